// Smoothing a line T times, in MetaFork (Chen et al. 2017). Repaired: (N - 2) / B leaves entries out where B does not divide it; here the number
// of blocks is rounded up, and a guard stands before the last one's end.
int N, T, B;
float a[N], b[N];
int ub_v = (N - 2 + B - 1) / B;
meta_schedule {
    for (int t = 0; t < T; ++t) {
        meta_for (int v = 0; v < ub_v; v++)
            meta_for (int u = 0; u < B; u++) {
                int p = v * B + u;
                if (p < N - 2)
                    b[p+1] = (a[p] + a[p+1] + a[p+2]) / 3;
            }
        meta_for (int v = 0; v < ub_v; v++)
            meta_for (int u = 0; u < B; u++) {
                int w = v * B + u;
                if (w < N - 2)
                    a[w+1] = b[w+1];
            }
    }
}
