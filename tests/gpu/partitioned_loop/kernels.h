// Device parts of the test of partitioned loops.
#pragma once

#include <cstdint>

namespace fusion::testing {

// out[i, j] = scale[0] * in[i, j] + in[i / 2, 1] for j < length; rows are `stride` apart; counts[i] is raised
// by one.
struct Rows {
  int64_t stride, length;
  const double *in, *scale;
  double* out;
  int64_t* counts;
};
void LaunchRows(void* stream, int64_t begin, int64_t end, const Rows& rows);
// c[i, j] += factors[j] for j <= i.
void LaunchTriangle(void* stream, int64_t begin, int64_t end, int64_t stride, const double* factors,
                    double* c);
// A grid that no device has.
void LaunchImpossible(void* stream);
// Writes where there is no memory.
void LaunchFault(void* stream);

}  // namespace fusion::testing
