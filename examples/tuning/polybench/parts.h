// The three loops compute this in iterations [begin, end), on the host with all its threads and on the
// device.
#pragma once

#include <cstdint>

namespace polybench {

// Rows [begin, end) of c = alpha * a * b + beta * c, with a [.., depth], b [depth, columns] and c [..,
// columns]; or, symmetric, the lower triangle of c = alpha * a * a' + beta * c, where b is not used. Matrices
// are by rows; ld* is the distance of rows in elements.
struct Product {
  int64_t columns, depth;
  double alpha, beta;
  const double* a;
  int64_t lda;
  const double* b;
  int64_t ldb;
  double* c;
  int64_t ldc;
  bool symmetric;
};

// tmp[i] = a[i, :] x, y[i] = alpha * tmp[i] + beta * b[i, :] x for i in [begin, end); a and b are [..,
// columns].
struct RowSums {
  int64_t columns;
  double alpha, beta;
  const double *a, *b, *x;
  double *tmp, *y;
};

// These run with OpenMP, one call at a time, for the vector instructions that this processor has.
void MultiplyOnHost(int64_t begin, int64_t end, const Product& product);
void SumRowsOnHost(int64_t begin, int64_t end, const RowSums& sums);
const char* HostInstructions();

// stream: a cudaStream_t. Launches and returns; the runtime's last error says if that failed.
void MultiplyOnDevice(void* stream, int64_t begin, int64_t end, const Product& product);
void SumRowsOnDevice(void* stream, int64_t begin, int64_t end, const RowSums& sums);

}  // namespace polybench
