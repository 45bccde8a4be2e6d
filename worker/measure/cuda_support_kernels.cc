#include "worker/measure/cuda_support_kernels.h"

#include "absl/strings/str_cat.h"
#include "library/catalog/embedded_files.h"

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

// Types of entries, as v1::DataType has them.
enum { F32 = 1, F64 = 2, I32 = 3 };
__device__ __forceinline__ double EntryAt(const void* from, int type, long long i) {
  return type == F64 ? ((const double*)from)[i] : type == I32 ? (double)((const int*)from)[i] : (double)((const float*)from)[i];
}

extern "C" __global__ void fusion_fill(void* to, int type, long long count, InputRule rule, u64 key) {
  EACH(i, count) {
    double entry = InputEntry(rule, key, i);
    if (type == F64) ((double*)to)[i] = entry; else if (type == I32) ((int*)to)[i] = (int)entry; else ((float*)to)[i] = (float)entry;
  }
}

// It is laid out as InspectionTable of the backend.
struct Inspected { u64 address; long long count; u64 reference; double scale; u64 excused; int kind; int type; int first_block; int blocks; };
struct Table { Inspected entries[FUSION_TABLE_ENTRIES]; int count; };
#if __CUDA_ARCH__ >= 700
#define CONSTANT const __grid_constant__
#else
#define CONSTANT const
#endif

// Entry e is done by blocks first_block to first_block + blocks - 1; all threads of a block do the same entry.
__device__ __forceinline__ int EntryOfBlock(const Table& table) {
  int e = 0;
  while (e + 1 < table.count && (int)blockIdx.x >= table.entries[e + 1].first_block) ++e;
  return e;
}
#define EACH_OF_ENTRY(i, e) \
  for (long long i = ((int)blockIdx.x - table.entries[e].first_block) * (long long)blockDim.x + threadIdx.x; \
       i < table.entries[e].count; i += table.entries[e].blocks * (long long)blockDim.x)

// count bytes from address on become those of a guard zone.
extern "C" __global__ void fusion_guard(CONSTANT Table table) {
  int e = EntryOfBlock(table);
  unsigned char* to = (unsigned char*)table.entries[e].address;
  EACH_OF_ENTRY(i, e) to[i] = GuardByte(table.entries[e].address + i);
}

// results[e], 0 before, becomes of kind 0 the hash of `count` 64-bit words and, if type is not 0, of a 32-bit word behind them; of
// kind 1 the number of bytes that are not those of a guard zone; of kind 2 the bits of the largest error.
extern "C" __global__ void fusion_inspect(CONSTANT Table table, u64* results) {
  int e = EntryOfBlock(table);
  u64 address = table.entries[e].address;
  int kind = table.entries[e].kind, type = table.entries[e].type;
  u64 mine = 0;
  if (kind == 0) {
    const u64* from = (const u64*)address;
    long long words = table.entries[e].count;
    EACH_OF_ENTRY(i, e) mine += HashWord(from[i], i);
    if (type && (int)blockIdx.x == table.entries[e].first_block && threadIdx.x == 0)
      mine += HashWord(*(const unsigned int*)(from + words), words);
  } else if (kind == 1) {
    EACH_OF_ENTRY(i, e) mine += ((const unsigned char*)address)[i] != GuardByte(address + i);
  } else {
    const double* reference = (const double*)table.entries[e].reference;
    const double* excused = (const double*)table.entries[e].excused;
    double scale = table.entries[e].scale;
    EACH_OF_ENTRY(i, e) {
      u64 error = (u64)__double_as_longlong(EntryError(EntryAt((const void*)address, type, i),
          ReferenceEntry(reference[i], type == F32), scale, excused ? excused[i] : 0.0));
      if (error > mine) mine = error;
    }
    for (int step = 16; step > 0; step /= 2) {
      u64 other = __shfl_xor_sync(0xffffffffu, mine, step);
      if (other > mine) mine = other;
    }
    if (threadIdx.x % 32 == 0 && mine) atomicMax(results + e, mine);
    return;
  }
  for (int step = 16; step > 0; step /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, step);
  if (threadIdx.x % 32 == 0 && mine) atomicAdd(results + e, mine);
}

extern "C" __global__ void fusion_widen(double* to, const void* from, int type, long long count) {
  EACH(i, count) to[i] = EntryAt(from, type, i);
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
  u64 bits = (u64)__double_as_longlong(largest);
  for (int step = 16; step > 0; step /= 2) {
    u64 other = __shfl_xor_sync(0xffffffffu, bits, step);
    if (other > bits) bits = other;
    finite += __shfl_xor_sync(0xffffffffu, finite, step);
  }
  if (threadIdx.x % 32 == 0) {
    atomicMax(result, bits);
    atomicAdd(result + 1, finite);
  }
}

extern "C" __global__ void fusion_squares(const double* reference, int f32, long long count, double largest,
                                          double* result) {
  double sum = 0;
  EACH(i, count) {
    double entry = ReferenceEntry(reference[i], f32) / largest;
    if (IsFiniteEntry(entry)) sum += entry * entry;
  }
  for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) {
#if __CUDA_ARCH__ >= 600
    atomicAdd(result, sum);
#else
    u64* bits = (u64*)result;
    u64 old = *bits, seen;
    do {
      seen = old;
      old = atomicCAS(bits, seen, (u64)__double_as_longlong(sum + __longlong_as_double((long long)seen)));
    } while (old != seen);
#endif
  }
}

// Pass 0: result[0] = bits of the largest error. Pass 1: result[1] = the smallest index with that error.
extern "C" __global__ void fusion_compare(const void* output, int type, const double* reference, long long count,
                                          double scale, const double* excused, int pass, u64* result) {
  u64 mine = pass ? ~0ull : 0;
  u64 worst = result[0];
  EACH(i, count) {
    u64 error = (u64)__double_as_longlong(EntryError(EntryAt(output, type, i),
        ReferenceEntry(reference[i], type == F32), scale, excused ? excused[i] : 0.0));
    if (pass) { if (error == worst && (u64)i < mine) mine = i; }
    else if (error > mine) mine = error;
  }
  if (pass) { if (mine != ~0ull) atomicMin(result + 1, mine); }
  else if (mine) atomicMax(result, mine);
}

extern "C" __global__ void fusion_perturb(double* entries, long long count, double most, u64 key) {
  EACH(i, count) entries[i] = PerturbedEntry(entries[i], most, key, i);
}

extern "C" __global__ void fusion_excuse(double* excused, const double* reference, const double* other, int f32,
                                         long long count, double factor, int first) {
  EACH(i, count) {
    double difference = factor * EntryDifference(ReferenceEntry(reference[i], f32), ReferenceEntry(other[i], f32));
    if (first || difference > excused[i]) excused[i] = difference;
  }
}
)";

}  // namespace

std::string SupportKernelsSource() {
  return absl::StrCat(EmbeddedFiles().at("verification/entry_operations.h"),
                      "\nusing namespace fusion;\n#define FUSION_TABLE_ENTRIES ", kInspectionTableEntries,
                      "\n", kKernels);
}

}  // namespace fusion
