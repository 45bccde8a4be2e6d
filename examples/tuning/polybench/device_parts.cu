// The device's parts: a tiled product with sums in registers, and two dot products of a row for each warp.
#include <cuda_runtime.h>

#include "parts.h"

namespace polybench {
namespace {

constexpr int kTileRows = 128, kTileColumns = 64, kTileDepth = 8, kThreads = 128;
// Two more, so that columns of a tile do not fall on the same banks, and pairs stay aligned.
constexpr int kRowsPitch = kTileRows + 2, kColumnsPitch = kTileColumns + 2;
constexpr int kLoadsOfA = kTileRows * kTileDepth / kThreads, kLoadsOfB = kTileColumns * kTileDepth / kThreads;

// A thread has 8 x 8 sums: rows 2 * ty + {0, 1} + 32 * q and columns 2 * tx + {0, 1} + 16 * q, so that a
// warp's reads of shared memory are broadcasts or neighbours. The next tiles are loaded to registers while
// the present ones are multiplied.
template <bool kSymmetric>
__global__ void __launch_bounds__(kThreads) MultiplyRows(int64_t begin, int64_t end, Product p) {
  __shared__ __align__(16) double tile_a[kTileDepth][kRowsPitch];
  __shared__ __align__(16) double tile_b[kTileDepth][kColumnsPitch];
  const int64_t row = begin + static_cast<int64_t>(blockIdx.y) * kTileRows;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kTileColumns;
  const int64_t last_row = min(row + kTileRows, end) - 1;
  if (kSymmetric && column > last_row) return;
  const int thread = threadIdx.x, tx = thread % 8, ty = thread / 8;

  double next_a[kLoadsOfA], next_b[kLoadsOfB];
  const auto load = [&](int64_t k) {
#pragma unroll
    for (int i = 0; i < kLoadsOfA; ++i) {
      const int index = thread + i * kThreads;
      const int64_t r = row + index / kTileDepth, d = k + index % kTileDepth;
      next_a[i] = r <= last_row && d < p.depth ? p.a[r * p.lda + d] : 0;
    }
#pragma unroll
    for (int i = 0; i < kLoadsOfB; ++i) {
      const int index = thread + i * kThreads;
      if (kSymmetric) {
        // Rows of a after this block's may not be on the device yet.
        const int64_t j = column + index / kTileDepth, d = k + index % kTileDepth;
        next_b[i] = j <= last_row && d < p.depth ? p.a[j * p.lda + d] : 0;
      } else {
        const int64_t j = column + index % kTileColumns, d = k + index / kTileColumns;
        next_b[i] = j < p.columns && d < p.depth ? p.b[d * p.ldb + j] : 0;
      }
    }
  };

  double sums[8][8] = {};
  load(0);
  for (int64_t k = 0; k < p.depth; k += kTileDepth) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kLoadsOfA; ++i) {
      const int index = thread + i * kThreads;
      tile_a[index % kTileDepth][index / kTileDepth] = next_a[i];
    }
#pragma unroll
    for (int i = 0; i < kLoadsOfB; ++i) {
      const int index = thread + i * kThreads;
      if (kSymmetric) tile_b[index % kTileDepth][index / kTileDepth] = next_b[i];
      if (!kSymmetric) tile_b[index / kTileColumns][index % kTileColumns] = next_b[i];
    }
    __syncthreads();
    if (k + kTileDepth < p.depth) load(k + kTileDepth);
#pragma unroll
    for (int d = 0; d < kTileDepth; ++d) {
      double2 of_a[4], of_b[4];
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        of_a[q] = *reinterpret_cast<const double2*>(&tile_a[d][2 * ty + 32 * q]);
        of_b[q] = *reinterpret_cast<const double2*>(&tile_b[d][2 * tx + 16 * q]);
      }
#pragma unroll
      for (int q = 0; q < 4; ++q) {
#pragma unroll
        for (int s = 0; s < 4; ++s) {
          sums[2 * q][2 * s] += of_a[q].x * of_b[s].x;
          sums[2 * q][2 * s + 1] += of_a[q].x * of_b[s].y;
          sums[2 * q + 1][2 * s] += of_a[q].y * of_b[s].x;
          sums[2 * q + 1][2 * s + 1] += of_a[q].y * of_b[s].y;
        }
      }
    }
  }

#pragma unroll
  for (int q = 0; q < 8; ++q) {
    const int64_t i = row + 2 * ty + 32 * (q / 2) + q % 2;
    if (i > last_row) continue;
#pragma unroll
    for (int s = 0; s < 8; ++s) {
      const int64_t j = column + 2 * tx + 16 * (s / 2) + s % 2;
      if (j >= p.columns || (kSymmetric && j > i)) continue;
      double* c = p.c + i * p.ldc + j;
      *c = p.alpha * sums[q][s] + p.beta * *c;
    }
  }
}

constexpr int kRowsOfBlock = 8;

__global__ void __launch_bounds__(kRowsOfBlock * 32) SumRows(int64_t begin, int64_t end, RowSums s) {
  const int64_t i = begin + static_cast<int64_t>(blockIdx.x) * kRowsOfBlock + threadIdx.x / 32;
  if (i >= end) return;  // of the whole warp
  const double *a = s.a + i * s.columns, *b = s.b + i * s.columns;
  double of_a = 0, of_b = 0;
#pragma unroll 4
  for (int64_t j = threadIdx.x % 32; j < s.columns; j += 32) {
    const double x = s.x[j];
    of_a += a[j] * x;
    of_b += b[j] * x;
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    of_a += __shfl_down_sync(0xffffffffu, of_a, distance);
    of_b += __shfl_down_sync(0xffffffffu, of_b, distance);
  }
  if (threadIdx.x % 32 == 0) {
    s.tmp[i] = of_a;
    s.y[i] = s.alpha * of_a + s.beta * of_b;
  }
}

unsigned Blocks(int64_t count, int64_t size) { return static_cast<unsigned>((count + size - 1) / size); }

}  // namespace

void MultiplyOnDevice(void* stream, int64_t begin, int64_t end, const Product& product) {
  // Of a triangle the columns after the last row are nobody's.
  const int64_t columns = product.symmetric && end < product.columns ? end : product.columns;
  const auto on = static_cast<cudaStream_t>(stream);
  // A grid has at most 65535 blocks in y.
  constexpr int64_t kMostRows = 65535ll * kTileRows;
  for (int64_t first = begin; first < end; first += kMostRows) {
    const int64_t last = first + kMostRows < end ? first + kMostRows : end;
    const dim3 grid(Blocks(columns, kTileColumns), Blocks(last - first, kTileRows));
    if (product.symmetric) MultiplyRows<true><<<grid, kThreads, 0, on>>>(first, last, product);
    if (!product.symmetric) MultiplyRows<false><<<grid, kThreads, 0, on>>>(first, last, product);
  }
}

void SumRowsOnDevice(void* stream, int64_t begin, int64_t end, const RowSums& sums) {
  SumRows<<<Blocks(end - begin, kRowsOfBlock), kRowsOfBlock * 32, 0, static_cast<cudaStream_t>(stream)>>>(
      begin, end, sums);
}

}  // namespace polybench
