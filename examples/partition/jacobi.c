// A stencil in a time loop: each step reads one array and writes the other, and the loops inside a step are
// parallel.
//
//   fusion-cc -O3 examples/partition/jacobi.c -o jacobi -Rpass=fusion && FUSION_PARTITION_REPORT=1 ./jacobi
//   ./jacobi N STEPS
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void jacobi(int n, int steps, double A[n][n], double B[n][n]) {
  for (int t = 0; t < steps; t++) {
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++)
        B[i][j] = .2 * (A[i][j] + A[i][j - 1] + A[i][j + 1] + A[i + 1][j] + A[i - 1][j]);
    for (int i = 1; i < n - 1; i++)
      for (int j = 1; j < n - 1; j++)
        A[i][j] = .2 * (B[i][j] + B[i][j - 1] + B[i][j + 1] + B[i + 1][j] + B[i - 1][j]);
  }
}

static void initialise(int n, double A[n][n], double B[n][n]) {
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) {
      A[i][j] = (i * (j + 2.) + 2) / n;
      B[i][j] = (i * (j + 3.) + 3) / n;
    }
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + now.tv_nsec * 1e-9;
}

int main(int count, char** arguments) {
  const int n = count > 2 ? atoi(arguments[1]) : 1300, steps = count > 2 ? atoi(arguments[2]) : 200;
  double(*A)[n] = malloc(sizeof(double[n][n]));
  double(*B)[n] = malloc(sizeof(double[n][n]));
  if (A == NULL || B == NULL) return 1;
  initialise(n, A, B);
  const double start = seconds();
  jacobi(n, steps, A, B);
  const double taken = seconds() - start;
  double sum = 0;
  for (int i = 0; i < n; i++)
    for (int j = 0; j < n; j++) sum += A[i][j];
  printf("checksum %a\nseconds %.6f\n", sum, taken);
  free(A);
  free(B);
}
