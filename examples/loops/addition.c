// Adding matrices, two entries a thread (Chen et al. 2017). For an odd N the middle column is left out.
int N, B0, B1;
#pragma fusion parameter B0 in 1..1024
#pragma fusion parameter B1 in 1..1024
int dim0 = N/B0, dim1 = N/(2*B1);
int h = N/2;
float a[N][N], b[N][N], c[N][N];
meta_schedule {
    meta_for (int v = 0; v < dim0; v++)
        meta_for (int p = 0; p < dim1; p++)
            meta_for (int u = 0; u < B0; u++)
                meta_for (int q = 0; q < B1; q++) {
                    int i = v * B0 + u;
                    int j = p * B1 + q;
                    if (i < N && j < h) {
                        c[i][j] = a[i][j] + b[i][j];
                        c[i][j+h] = a[i][j+h] + b[i][j+h];
                    }
                }
}
