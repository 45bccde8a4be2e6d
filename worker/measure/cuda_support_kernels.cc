#include "worker/measure/cuda_support_kernels.h"

#include "worker/measure/entry_operations.h"

namespace fusion {

const char kSupportPtx[] = R"(
.version 6.0
.target sm_50
.address_size 64

.visible .entry fusion_empty() { ret; }

.visible .entry fusion_delay(.param .u64 nanoseconds)
{
  .reg .u64 %rd<5>;
  .reg .pred %p;
  ld.param.u64 %rd1, [nanoseconds];
  mov.u64 %rd2, %globaltimer;
AGAIN:
  mov.u64 %rd3, %globaltimer;
  sub.u64 %rd4, %rd3, %rd2;
  setp.lt.u64 %p, %rd4, %rd1;
  @%p bra AGAIN;
  ret;
}
)";

namespace {

constexpr char kKernels[] = R"(
typedef unsigned long long u64;
#define EACH(i, count) \
  for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; \
       i += gridDim.x * (long long)blockDim.x)

extern "C" __global__ void fusion_fill(void* to, int f64, long long count, int real, int bits, u64 key) {
  EACH(i, count) {
    double entry = InputEntry(key, i, real, bits);
    if (f64) ((double*)to)[i] = entry; else ((float*)to)[i] = (float)entry;
  }
}

extern "C" __global__ void fusion_widen(double* to, const void* from, int f64, long long count) {
  EACH(i, count) to[i] = f64 ? ((const double*)from)[i] : (double)((const float*)from)[i];
}

// result[0] += the hash of `words` 64-bit words and of one 32-bit word behind them if there is a tail.
extern "C" __global__ void fusion_hash(const u64* from, long long words, int tail, u64* result) {
  u64 sum = 0;
  EACH(i, words) sum += HashWord(from[i], i);
  if (tail && blockIdx.x == 0 && threadIdx.x == 0) sum += HashWord(*(const unsigned int*)(from + words), words);
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) atomicAdd(result, sum);
}

// result[0]: bits of the largest finite |entry| (bits of positive doubles are ordered like the doubles);
// result[1]: the number of finite entries.
extern "C" __global__ void fusion_largest(const double* reference, int f32, long long count, u64* result) {
  double largest = 0;
  u64 finite = 0;
  EACH(i, count) {
    double entry = ReferenceEntry(reference[i], f32);
    if (!IsFiniteEntry(entry)) continue;
    ++finite;
    largest = fmax(largest, fabs(entry));
  }
  atomicMax(result, (u64)__double_as_longlong(largest));
  atomicAdd(result + 1, finite);
}

extern "C" __global__ void fusion_squares(const double* reference, int f32, long long count, double largest,
                                          double* result) {
  double sum = 0;
  EACH(i, count) {
    double entry = ReferenceEntry(reference[i], f32) / largest;
    if (IsFiniteEntry(entry)) sum += entry * entry;
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  // By hand: atomicAdd of doubles needs sm_60, and this runs once for an output.
  if (threadIdx.x % 32 == 0) {
    u64* bits = (u64*)result;
    u64 old = *bits, seen;
    do {
      seen = old;
      old = atomicCAS(bits, seen, (u64)__double_as_longlong(sum + __longlong_as_double((long long)seen)));
    } while (old != seen);
  }
}

// Pass 0: result[0] = bits of the largest error. Pass 1: result[1] = the smallest index with that error.
extern "C" __global__ void fusion_compare(const void* output, int f64, const double* reference, long long count,
                                          double scale, int pass, u64* result) {
  u64 mine = pass ? ~0ull : 0;
  u64 worst = result[0];
  EACH(i, count) {
    double entry = f64 ? ((const double*)output)[i] : (double)((const float*)output)[i];
    u64 error = (u64)__double_as_longlong(EntryError(entry, ReferenceEntry(reference[i], !f64), scale));
    if (pass) { if (error == worst && (u64)i < mine) mine = i; }
    else if (error > mine) mine = error;
  }
  if (pass) { if (mine != ~0ull) atomicMin(result + 1, mine); }
  else if (mine) atomicMax(result, mine);
}
)";

}  // namespace

std::string SupportKernelsSource() { return std::string(kEntryOperationsSource) + kKernels; }

}  // namespace fusion
