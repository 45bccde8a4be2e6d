// Reversing an array, s entries a thread (Chen et al. 2017). Where s*B does not divide N, entries at the end are left out.
int N, s, B;
#pragma fusion parameter s in 1..64
#pragma fusion parameter B in 1..1024
int dim = N/(s*B);
int a[N], c[N];
#pragma fusion registers 4 3
meta_schedule {
    meta_for (int i = 0; i < dim; i++)
        meta_for (int j = 0; j < B; j++)
            for (int k = 0; k < s; ++k) {
                int x = (i*s+k)*B+j;
                int y = N-1-x;
                c[y] = a[x];
            }
}
