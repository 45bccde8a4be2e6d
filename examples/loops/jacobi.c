// 1D Jacobi in one array of two halves, with a granularity of s (Chen et al. 2017). Where s*B does not divide N - 2, entries at the end stay as they are.
int T, N, s, B;
#pragma fusion parameter s in 1..64
#pragma fusion parameter B in 1..1024
int dim = (N-2)/(s*B);
int a[2*N];
#pragma fusion registers 9 9
for (int t = 0; t < T; ++t)
    meta_schedule {
        meta_for (int i = 0; i < dim; i++)
        meta_for (int j = 0; j < B; j++)
            for (int k = 0; k < s; ++k) {
                int p = i * s * B + k * B + j;
                int p1 = p + 1;
                int p2 = p + 2;
                int np = N + p;
                int np1 = N + p + 1;
                int np2 = N + p + 2;
                if (t % 2)
                    a[p1] = (a[np] + a[np1] + a[np2]) / 3;
                else
                    a[np1] = (a[p] + a[p1] + a[p2]) / 3;
            }
    }
