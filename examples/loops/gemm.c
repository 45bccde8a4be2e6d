// C = alpha A B + beta C, as PolyBench/C writes it. The loop over rows becomes two kernels, and in the second j is brought outside of k.
int ni, nj, nk;
float alpha, beta;
float C[ni][nj], A[ni][nk], B[nk][nj];
#pragma fusion parametric
for (int i = 0; i < ni; i++) {
    for (int j = 0; j < nj; j++)
        C[i][j] *= beta;
    for (int k = 0; k < nk; k++)
        for (int j = 0; j < nj; j++)
            C[i][j] += alpha * A[i][k] * B[k][j];
}
