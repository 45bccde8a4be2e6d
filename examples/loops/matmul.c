// Multiplying square matrices in tiles, with a granularity of s (Chen et al. 2017). dim, dim0 and dim1 are tiles in each direction: what is behind the
// last whole tile is left out.
int N, B0, B1, B, s;
#pragma fusion parameter s in 1..64
#pragma fusion parameter B0 in 1..1024
#pragma fusion parameter B1 in 1..1024
#pragma fusion parameter B in 1..1024
int dim0 = N/B0, dim1 = N/(B1*s), dim = N/B;
float a[N][N], b[N][N], c[N*N];
#pragma fusion registers 9 8
meta_schedule cache(a, b, c) {
    meta_for (int v0 = 0; v0 < dim0; v0++)
    meta_for (int v1 = 0; v1 < dim1; v1++)
        for (int w = 0; w < dim; w++)
            meta_for (int u0 = 0; u0 < B0; u0++)
            meta_for (int u1 = 0; u1 < B1; u1++)
                for (int k = 0; k < s; ++k) {
                    int i = v0*B0+u0;
                    int j = (v1*s+k)*B1+u1;
                    for (int z = 0; z < B; z++) {
                        int p = B*w+z;
                        c[i*N+j] = c[i*N+j] + a[i][p] * b[p][j];
                    }
                }
}
