// C = beta * C + alpha * A * B, as PolyBench 4.2 has it (Baier 2016, section 6: 1000 1000 1000 and 2000 2300
// 2600).
//
//   fusion-cc -O3 examples/partition/gemm.c -o gemm -Rpass=fusion && FUSION_PARTITION_REPORT=1 ./gemm
//   ./gemm NI NJ NK
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void gemm(int ni, int nj, int nk, double alpha, double beta, double C[ni][nj], double A[ni][nk],
                 double B[nk][nj]) {
  for (int i = 0; i < ni; i++) {
    for (int j = 0; j < nj; j++) C[i][j] *= beta;
    for (int k = 0; k < nk; k++)
      for (int j = 0; j < nj; j++) C[i][j] += alpha * A[i][k] * B[k][j];
  }
}

static void initialise(int ni, int nj, int nk, double C[ni][nj], double A[ni][nk], double B[nk][nj]) {
  for (int i = 0; i < ni; i++)
    for (int j = 0; j < nj; j++) C[i][j] = (double)((i * (long)j + 1) % ni) / ni;
  for (int i = 0; i < ni; i++)
    for (int k = 0; k < nk; k++) A[i][k] = (double)(i * (k + 1L) % nk) / nk;
  for (int k = 0; k < nk; k++)
    for (int j = 0; j < nj; j++) B[k][j] = (double)(k * (j + 2L) % nj) / nj;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

int main(int count, char** arguments) {
  const int ni = count > 3 ? atoi(arguments[1]) : 1000, nj = count > 3 ? atoi(arguments[2]) : 1000;
  const int nk = count > 3 ? atoi(arguments[3]) : 1000;
  double(*C)[nj] = malloc(sizeof(double[ni][nj]));
  double(*A)[nk] = malloc(sizeof(double[ni][nk]));
  double(*B)[nj] = malloc(sizeof(double[nk][nj]));
  if (C == NULL || A == NULL || B == NULL) return 1;
  initialise(ni, nj, nk, C, A, B);
  const double start = seconds();
  gemm(ni, nj, nk, 1.5, 1.2, C, A, B);
  const double taken = seconds() - start;
  double sum = 0;
  for (int i = 0; i < ni; i++)
    for (int j = 0; j < nj; j++) sum += C[i][j];
  printf("checksum %a\nseconds %.6f\n", sum, taken);
  free(C);
  free(A);
  free(B);
}
