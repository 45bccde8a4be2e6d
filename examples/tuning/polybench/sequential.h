/* The kernels of PolyBench/C 4.2 (linear-algebra/blas/gemm, gesummv, syrk) as they are there, for one thread:
 * the baseline and the reference. Matrices are by rows. */
#ifndef POLYBENCH_SEQUENTIAL_H_
#define POLYBENCH_SEQUENTIAL_H_

#ifdef __cplusplus
extern "C" {
#endif

/* C[ni][nj] = alpha * A[ni][nk] * B[nk][nj] + beta * C (Baier 2016, figure 6.1) */
void sequential_gemm(int ni, int nj, int nk, double alpha, double beta, double* c, const double* a,
                     const double* b);
/* tmp = A x, y = alpha * tmp + beta * B x (figure 6.3) */
void sequential_gesummv(int n, double alpha, double beta, const double* a, const double* b, double* tmp,
                        const double* x, double* y);
/* The lower triangle of C[n][n] = alpha * A[n][m] * A' + beta * C (figure 6.5) */
void sequential_syrk(int n, int m, double alpha, double beta, double* c, const double* a);

#ifdef __cplusplus
}
#endif

#endif
