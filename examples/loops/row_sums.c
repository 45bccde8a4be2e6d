// Sums of rows, and of columns.
int n, m;
float a[n][m], row[n], column[m];
#pragma fusion parametric
for (int i = 0; i < n; i++) {
    row[i] = 0;
    for (int j = 0; j < m; j++)
        row[i] += a[i][j];
}
#pragma fusion parametric
for (int j = 0; j < m; j++) {
    column[j] = 0;
    for (int i = 0; i < n; i++)
        column[j] += a[i][j];
}
