#include "sequential.h"

/* PolyBench's own loops and loop order; restrict as with its -DPOLYBENCH_USE_RESTRICT, which the seed uses.
 */
static void gemm(int ni, int nj, int nk, double alpha, double beta, double C[restrict ni][nj],
                 const double A[restrict ni][nk], const double B[restrict nk][nj]) {
  for (int i = 0; i < ni; i++) {
    for (int j = 0; j < nj; j++) C[i][j] *= beta;
    for (int k = 0; k < nk; k++) {
      for (int j = 0; j < nj; j++) C[i][j] += alpha * A[i][k] * B[k][j];
    }
  }
}

static void gesummv(int n, double alpha, double beta, const double A[restrict n][n],
                    const double B[restrict n][n], double tmp[restrict n], const double x[restrict n],
                    double y[restrict n]) {
  for (int i = 0; i < n; i++) {
    tmp[i] = 0.0;
    y[i] = 0.0;
    for (int j = 0; j < n; j++) {
      tmp[i] = A[i][j] * x[j] + tmp[i];
      y[i] = B[i][j] * x[j] + y[i];
    }
    y[i] = alpha * tmp[i] + beta * y[i];
  }
}

static void syrk(int n, int m, double alpha, double beta, double C[restrict n][n],
                 const double A[restrict n][m]) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j <= i; j++) C[i][j] *= beta;
    for (int k = 0; k < m; k++) {
      for (int j = 0; j <= i; j++) C[i][j] += alpha * A[i][k] * A[j][k];
    }
  }
}

void sequential_gemm(int ni, int nj, int nk, double alpha, double beta, double* c, const double* a,
                     const double* b) {
  gemm(ni, nj, nk, alpha, beta, (double(*)[nj])c, (const double(*)[nk])a, (const double(*)[nj])b);
}

void sequential_gesummv(int n, double alpha, double beta, const double* a, const double* b, double* tmp,
                        const double* x, double* y) {
  gesummv(n, alpha, beta, (const double(*)[n])a, (const double(*)[n])b, tmp, x, y);
}

void sequential_syrk(int n, int m, double alpha, double beta, double* c, const double* a) {
  syrk(n, m, alpha, beta, (double(*)[n])c, (const double(*)[m])a);
}
