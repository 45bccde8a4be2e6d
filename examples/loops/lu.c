// Decomposition into lower and upper triangles, in OpenMP 4.5 (Chen et al. 2017). Repaired: the print has an undeclared d in in5.
#define N 2048
float L[N*N], U[N*N];
int G, B;
for (int k = 0; k < N; ++k) {
    #pragma omp target
    #pragma omp teams num_teams(G) \
        thread_limit(B)
    #pragma omp distribute parallel \
        for schedule(static, 1)
    for (int i = 0; i < N; i++)
        if (i < N-k-1) {
            int p = i + k + 1;
            int in1 = k*N+p, in2 = k*N+k;
            L[in1] = U[in1] / U[in2];
            for (int j = k; j < N; j++) {
                int in3 = j*N+p;
                int in4 = k*N+p, in5 = j*N+k;
                U[in3] -= L[in4] * U[in5];
            }
        }
}
