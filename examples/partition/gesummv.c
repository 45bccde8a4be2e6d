// y = alpha * A * x + beta * B * x, as PolyBench 4.2 has it (Baier 2016, section 6: 2000 and 10000).
//
//   fusion-cc -O3 examples/partition/gesummv.c -o gesummv -Rpass=fusion && FUSION_PARTITION_REPORT=1
//   ./gesummv
//   ./gesummv N
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void gesummv(int n, double alpha, double beta, double A[n][n], double B[n][n], double tmp[n],
                    double x[n], double y[n]) {
  for (int i = 0; i < n; i++) {
    tmp[i] = 0;
    y[i] = 0;
    for (int j = 0; j < n; j++) {
      tmp[i] = A[i][j] * x[j] + tmp[i];
      y[i] = B[i][j] * x[j] + y[i];
    }
    y[i] = alpha * tmp[i] + beta * y[i];
  }
}

static void initialise(int n, double A[n][n], double B[n][n], double x[n]) {
  for (int i = 0; i < n; i++) {
    x[i] = (double)(i % n) / n;
    for (int j = 0; j < n; j++) {
      A[i][j] = (double)((i * (long)j + 1) % n) / n;
      B[i][j] = (double)((i * (long)j + 2) % n) / n;
    }
  }
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

int main(int count, char** arguments) {
  const int n = count > 1 ? atoi(arguments[1]) : 7000;
  double(*A)[n] = malloc(sizeof(double[n][n]));
  double(*B)[n] = malloc(sizeof(double[n][n]));
  double *tmp = malloc(sizeof(double[n])), *x = malloc(sizeof(double[n])), *y = malloc(sizeof(double[n]));
  if (A == NULL || B == NULL || tmp == NULL || x == NULL || y == NULL) return 1;
  initialise(n, A, B, x);
  const double start = seconds();
  gesummv(n, 1.5, 1.2, A, B, tmp, x, y);
  const double taken = seconds() - start;
  double sum = 0;
  for (int i = 0; i < n; i++) sum += y[i];
  printf("checksum %a\nseconds %.6f\n", sum, taken);
  free(A);
  free(B);
  free(tmp);
  free(x);
  free(y);
}
