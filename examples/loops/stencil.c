// Five points of a grid, T times forth and back.
int n, T;
float a[n][n], b[n][n];
for (int t = 0; t < T; t++) {
    #pragma fusion parametric
    for (int i = 1; i < n - 1; i++)
        for (int j = 1; j < n - 1; j++)
            b[i][j] = 0.2f * (a[i][j] + a[i][j-1] + a[i][j+1] + a[i+1][j] + a[i-1][j]);
    #pragma fusion parametric
    for (int i = 1; i < n - 1; i++)
        for (int j = 1; j < n - 1; j++)
            a[i][j] = 0.2f * (b[i][j] + b[i][j-1] + b[i][j+1] + b[i+1][j] + b[i-1][j]);
}
