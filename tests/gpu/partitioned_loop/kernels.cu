#include <cuda_runtime.h>

#include "tests/gpu/partitioned_loop/kernels.h"

namespace fusion::testing {
namespace {

__global__ void RowsKernel(int64_t begin, int64_t end, Rows rows) {
  const int64_t i = begin + blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= end) return;
  for (int64_t j = 0; j < rows.length; ++j) {
    rows.out[i * rows.stride + j] =
        rows.scale[0] * rows.in[i * rows.stride + j] + rows.in[i / 2 * rows.stride + 1];
  }
  rows.counts[i] += 1;
}

__global__ void TriangleKernel(int64_t begin, int64_t end, int64_t stride, const double* factors, double* c) {
  const int64_t i = begin + blockIdx.x;
  for (int64_t j = threadIdx.x; j <= i; j += blockDim.x) c[i * stride + j] += factors[j];
}

__global__ void FaultKernel(double* nowhere) { *nowhere = 1; }

}  // namespace

void LaunchRows(void* stream, int64_t begin, int64_t end, const Rows& rows) {
  const auto blocks = static_cast<unsigned>((end - begin + 127) / 128);
  RowsKernel<<<blocks, 128, 0, static_cast<cudaStream_t>(stream)>>>(begin, end, rows);
}

void LaunchTriangle(void* stream, int64_t begin, int64_t end, int64_t stride, const double* factors,
                    double* c) {
  const auto blocks = static_cast<unsigned>(end - begin);
  TriangleKernel<<<blocks, 128, 0, static_cast<cudaStream_t>(stream)>>>(begin, end, stride, factors, c);
}

void LaunchImpossible(void* stream) {
  FaultKernel<<<1, 1 << 20, 0, static_cast<cudaStream_t>(stream)>>>(nullptr);
}

void LaunchFault(void* stream) {
  FaultKernel<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(reinterpret_cast<double*>(uintptr_t{1} << 60));
}

}  // namespace fusion::testing
