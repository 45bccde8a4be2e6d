// Transposing a matrix.
int n, m;
float in[n][m], out[m][n];
#pragma fusion parametric
for (int i = 0; i < n; i++)
    for (int j = 0; j < m; j++)
        out[j][i] = in[i][j];
