// The device runtime that generated kernels are written against. One text serves CUDA (nvcc and NVRTC, sm_75 and later)
// and host C++17; it includes no standard header under NVRTC.
//
// Results do not depend on the options of the compiler, with one exception: no product and sum of different functions become one
// multiply-add, whatever -ffp-contract or -fmad says; `fma`, and the sums inside a routine, are multiply-adds in every kernel
// alike (fusion_math.h). The exception is -ffast-math, -Ofast and --use_fast_math, which permit a compiler to compute something else: sums
// lose digits then, and NaN, infinities and the sign of zero are not kept.
#ifndef FUSION_DEVICE_H_
#define FUSION_DEVICE_H_

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define FUSION_CUDA 1
#define FUSION_FN __device__ __forceinline__
#define FUSION_UNROLL _Pragma("unroll")
#define FUSION_UNROLL_ON_DEVICE FUSION_UNROLL
#define FUSION_NO_UNROLL _Pragma("unroll 1")
#define FUSION_RESTRICT __restrict__
#else
#define FUSION_CUDA 0
#if defined(__clang__)
#pragma clang fp contract(off)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")  // it does not know the pragma of C; to the end of the file that includes this one
#endif
#include <cmath>
#include <cstdlib>
#include <cstring>
#define FUSION_FN inline __attribute__((always_inline))
#ifndef FUSION_UNROLL  // else by tests, to which fast code is not worth the time that compilers take for it
#define FUSION_UNROLL _Pragma("GCC unroll 1024")
#endif
#define FUSION_UNROLL_ON_DEVICE
#define FUSION_NO_UNROLL _Pragma("GCC unroll 1")
#define FUSION_RESTRICT __restrict__
#endif
// Whether f64 is at hand where f32 has not enough digits or range: on a host it is half as fast, on many GPUs 64 times as dear. Tests
// make it 0 and run on a host what GPUs compute.
#ifndef FUSION_WIDE
#define FUSION_WIDE !FUSION_CUDA
#endif
// Hosts go entry by entry where a GPU accesses so many bytes at once, for which the address must be a multiple of them. Where
// tests define this, it is told of each such access.
#ifndef FUSION_AT_ONCE
#define FUSION_AT_ONCE(address, bytes) ((void)0)
#endif

typedef long long fu_index;
// Counts tiles of 256 bytes and more: of all that a GPU has, fewer than 2^31.
#if FUSION_CUDA
typedef unsigned fu_tile;
#else
typedef fu_index fu_tile;
#endif

// What the launch has found to hold, or it would have taken another kernel; compilers know it from here on.
FUSION_FN void fu_expect(bool holds) {
  if (holds) return;
#if FUSION_CUDA
  __trap();
  __builtin_unreachable();  // NVVM does not know that a trap does not return
#else
  std::abort();
#endif
}

#include "fusion_math.h"
#include "fusion_host_math.h"
#include "fusion_monoids.h"
#include "fusion_memory.h"
#include "fusion_staging.h"
#include "fusion_collectives.h"
#include "fusion_exchange.h"

#endif  // FUSION_DEVICE_H_
