// The lower half of C = beta * C + alpha * A * A', as PolyBench 4.2 has it (Baier 2016, section 6: 2600 2000
// and 10000 100). Row i is i + 1 long: equal numbers of iterations are not equal work.
//
//   fusion-cc -O3 examples/partition/syrk.c -o syrk -Rpass=fusion && FUSION_PARTITION_REPORT=1 ./syrk
//   ./syrk N M
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void syrk(int n, int m, double alpha, double beta, double C[n][n], double A[n][m]) {
  for (int i = 0; i < n; i++) {
    for (int j = 0; j <= i; j++) C[i][j] *= beta;
    for (int k = 0; k < m; k++)
      for (int j = 0; j <= i; j++) C[i][j] += alpha * A[i][k] * A[j][k];
  }
}

static void initialise(int n, int m, double C[n][n], double A[n][m]) {
  for (int i = 0; i < n; i++)
    for (int k = 0; k < m; k++) A[i][k] = (double)((i * (long)k + 1) % n) / n;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) C[i][j] = (double)((i * (long)j + 2) % m) / m;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

int main(int count, char** arguments) {
  const int n = count > 2 ? atoi(arguments[1]) : 1300, m = count > 2 ? atoi(arguments[2]) : 1000;
  double(*C)[n] = malloc(sizeof(double[n][n]));
  double(*A)[m] = malloc(sizeof(double[n][m]));
  if (C == NULL || A == NULL) return 1;
  initialise(n, m, C, A);
  const double start = seconds();
  syrk(n, m, 1.5, 1.2, C, A);
  const double taken = seconds() - start;
  double sum = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) sum += C[i][j];
  printf("checksum %a\nseconds %.6f\n", sum, taken);
  free(C);
  free(A);
}
