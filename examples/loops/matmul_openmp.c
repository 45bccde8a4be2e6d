// Multiplying square matrices in OpenMP 4.5 (Chen et al. 2017): rows to teams, columns to threads. Repaired: the thread limit is called B1, as B is an array.
#define N 2048
float A[N*N], B[N*N], C[N*N];
int G, B1, i, j;
#pragma omp target \
    map(tofrom: C[0:N*N]) \
    map(to: A[0:N*N]) \
    map(to: B[0:N*N])
#pragma omp teams num_teams(G) \
    thread_limit(B1)
#pragma omp distribute private(j)
for (i = 0; i < N; i++) {
    #pragma omp parallel \
        for schedule(static, 1)
    for (j = 0; j < N; j++) {
        float r_C;
        int idx1 = i*N+j;
        r_C = C[idx1];
        for (int k = 0; k < N; k++) {
            int idx2 = i*N+k, idx3 = k*N+j;
            r_C += A[idx2] * B[idx3];
        }
        C[idx1] = r_C;
    }
}
