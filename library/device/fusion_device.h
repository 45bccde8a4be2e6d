// The device runtime that generated kernels are written against. One text serves CUDA (nvcc and NVRTC, sm_75 and later)
// and host C++17; it includes no standard header under NVRTC.
#ifndef FUSION_DEVICE_H_
#define FUSION_DEVICE_H_

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define FUSION_CUDA 1
#define FUSION_FN __device__ __forceinline__
#define FUSION_UNROLL _Pragma("unroll")
#define FUSION_NO_UNROLL _Pragma("unroll 1")
#define FUSION_RESTRICT __restrict__
#else
#define FUSION_CUDA 0
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#define FUSION_FN inline __attribute__((always_inline))
#define FUSION_UNROLL _Pragma("GCC unroll 1024")
#define FUSION_NO_UNROLL _Pragma("GCC unroll 1")
#define FUSION_RESTRICT __restrict__
#endif

#include "fusion_math.h"

typedef long long fu_index;
// Counts tiles of 256 bytes and more: of all that a GPU has, fewer than 2^31.
#if FUSION_CUDA
typedef unsigned fu_tile;
#else
typedef fu_index fu_tile;
#endif

// ---- Monoids of reductions ---------------------------------------------------------------------------------------

template <class T>
FUSION_FN T fu_infinity() {
#if FUSION_CUDA
  return (T)__longlong_as_double(0x7ff0000000000000LL);
#else
  return std::numeric_limits<T>::infinity();
#endif
}

// Each monoid: Acc, the partial result; lift(term, index); combine; value(acc).
template <class T>
struct fu_sum {
  typedef T Acc;
  static FUSION_FN Acc identity() { return T(0); }
  static FUSION_FN Acc lift(T term, fu_index) { return term; }
  static FUSION_FN Acc combine(Acc a, Acc b) { return a + b; }
  static FUSION_FN T value(Acc a) { return a; }
};
template <class T>
struct fu_maximum {
  typedef T Acc;
  static FUSION_FN Acc identity() { return -fu_infinity<T>(); }
  static FUSION_FN Acc lift(T term, fu_index) { return term; }
  static FUSION_FN Acc combine(Acc a, Acc b) { return a < b || b != b ? b : a; }  // NaN wins
  static FUSION_FN T value(Acc a) { return a; }
};
template <class T>
struct fu_minimum {
  typedef T Acc;
  static FUSION_FN Acc identity() { return fu_infinity<T>(); }
  static FUSION_FN Acc lift(T term, fu_index) { return term; }
  static FUSION_FN Acc combine(Acc a, Acc b) { return b < a || b != b ? b : a; }
  static FUSION_FN T value(Acc a) { return a; }
};
// The index of the largest entry, of equal ones the first; -1 of nothing. The index is returned as T: exact up to 2^24
// entries in f32 and 2^53 in f64. A NaN counts as the largest.
template <class T>
struct fu_arg_max {
  struct Acc {
    T value;
    fu_index index;
  };
  static FUSION_FN Acc identity() { return Acc{-fu_infinity<T>(), -1}; }
  static FUSION_FN Acc lift(T term, fu_index index) { return Acc{term, index}; }
  static FUSION_FN bool before(Acc a, Acc b) {  // a wins over b
    if (a.index < 0 || b.index < 0) return b.index < 0;
    bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan) return a_nan;
    if (a_nan || a.value == b.value) return a.index < b.index;
    return a.value > b.value;
  }
  static FUSION_FN Acc combine(Acc a, Acc b) { return before(a, b) ? a : b; }
  static FUSION_FN T value(Acc a) { return (T)a.index; }
};

// ---- Loads and stores of V consecutive entries -------------------------------------------------------------------

// True when an address permits 16-byte accesses.
template <class T>
FUSION_FN bool fu_aligned(const T* pointer) {
  return ((unsigned long long)pointer & 15) == 0;
}

#if FUSION_CUDA
// One access of V entries, through the vector type of CUDA. Plain loads: where a kernel only reads the memory the compiler
// takes the read-only path by itself, and where an earlier section of it wrote there it must not.
template <class T, int V>
struct fu_vector {
  static FUSION_FN void load(T* out, const T* from) { out[0] = *from; }
  static FUSION_FN void store(T* to, const T* in) { to[0] = in[0]; }
};
template <>
struct fu_vector<float, 2> {
  static FUSION_FN void load(float* out, const float* from) {
    float2 x = *reinterpret_cast<const float2*>(from);
    out[0] = x.x, out[1] = x.y;
  }
  static FUSION_FN void store(float* to, const float* in) {
    *reinterpret_cast<float2*>(to) = make_float2(in[0], in[1]);
  }
};
template <>
struct fu_vector<float, 4> {
  static FUSION_FN void load(float* out, const float* from) {
    float4 x = *reinterpret_cast<const float4*>(from);
    out[0] = x.x, out[1] = x.y, out[2] = x.z, out[3] = x.w;
  }
  static FUSION_FN void store(float* to, const float* in) {
    *reinterpret_cast<float4*>(to) = make_float4(in[0], in[1], in[2], in[3]);
  }
};
template <>
struct fu_vector<double, 2> {
  static FUSION_FN void load(double* out, const double* from) {
    double2 x = *reinterpret_cast<const double2*>(from);
    out[0] = x.x, out[1] = x.y;
  }
  static FUSION_FN void store(double* to, const double* in) {
    *reinterpret_cast<double2*>(to) = make_double2(in[0], in[1]);
  }
};
#endif

// out[v] = base[index + v] for index + v < limit, else 0. `aligned`: base + index is a multiple of V entries. `whole`, a constant:
// it is, and all of them are below the limit.
template <int V, class T>
FUSION_FN void fu_load(T (&out)[V], const T* FUSION_RESTRICT base, fu_index index, fu_index limit, bool aligned,
                       bool whole = false) {
#if FUSION_CUDA
  if (whole || (aligned && index + V <= limit)) {
    fu_vector<T, V>::load(out, base + index);
    return;
  }
#endif
  FUSION_UNROLL
  for (int v = 0; v < V; ++v) out[v] = whole || index + v < limit ? base[index + v] : T(0);
}

template <int V, class T>
FUSION_FN void fu_store(T* base, const T (&in)[V], fu_index index, fu_index limit, bool aligned, bool whole = false) {
#if FUSION_CUDA
  if (whole || (aligned && index + V <= limit)) {
    fu_vector<T, V>::store(base + index, in);
    return;
  }
#endif
  FUSION_UNROLL
  for (int v = 0; v < V; ++v)
    if (whole || index + v < limit) base[index + v] = in[v];
}

// As fu_load, of something that the kernel only reads: the L2 cache is asked to keep PERCENT of its lines for the next run of
// the kernel, and to give up the others first (createpolicy.fractional, sm_80). What is larger than the cache and
// read in the same order each time would otherwise push itself out before it is read again.
template <int V, int PERCENT, class T>
FUSION_FN void fu_load_kept(T (&out)[V], const T* FUSION_RESTRICT base, fu_index index, fu_index limit, bool aligned,
                            bool whole = false) {
#if FUSION_CUDA && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if (V * sizeof(T) == 16 && (whole || (aligned && index + V <= limit))) {
    unsigned long long policy;
    asm("createpolicy.fractional.L2::evict_last.L2::evict_first.b64 %0, %1;" : "=l"(policy) : "f"(PERCENT / 100.0f));
    uint4 x;  // volatile: not before the wait of fu_launch_begin
    asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(base + index), "l"(policy));
    memcpy(out, &x, 16);
    return;
  }
#endif
  fu_load<V>(out, base, index, limit, aligned, whole);
}
// As fu_store, of what is not read soon: the L2 cache may give it up first.
template <int V, class T>
FUSION_FN void fu_store_once(T* base, const T (&in)[V], fu_index index, fu_index limit, bool aligned, bool whole = false) {
#if FUSION_CUDA
  if (V * sizeof(T) == 16 && (whole || (aligned && index + V <= limit))) {
    uint4 x;
    memcpy(&x, in, 16);
    __stcs((uint4*)(base + index), x);
    return;
  }
#endif
  fu_store<V>(base, in, index, limit, aligned, whole);
}

// *target += value, with other threads adding to it too.
template <class T>
FUSION_FN void fu_atomic_add(T* target, T value) {
#if FUSION_CUDA
  atomicAdd(target, value);
#else
#ifdef _OPENMP
#pragma omp atomic
#endif
  *target += value;
#endif
}
// base[index + v] += in[v] for entries below `limit`, with other threads adding to them too. `aligned`: base is aligned to 16
// bytes.
template <int V, class T>
FUSION_FN void fu_atomic_add(T* base, const T (&in)[V], fu_index index, fu_index limit, bool aligned) {
#if FUSION_CUDA
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if (V == 4 && sizeof(T) == 4 && aligned && index + V <= limit) {
    asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};"
                 : : "l"(base + index), "f"((float)in[0]), "f"((float)in[1 % V]), "f"((float)in[2 % V]), "f"((float)in[3 % V])
                 : "memory");
    return;
  }
#endif
#endif
  (void)aligned;
  FUSION_UNROLL
  for (int v = 0; v < V; ++v)
    if (index + v < limit) fu_atomic_add(base + index + v, in[v]);
}

// `pointer`, of which the compiler is to know that it permits 16-byte accesses.
template <bool ALIGNED, class T>
FUSION_FN T* fu_placed(T* pointer) {
  return ALIGNED ? static_cast<T*>(__builtin_assume_aligned(pointer, 16)) : pointer;
}

// out[v] = base[index + v]; index is a multiple of V. `base` is in shared memory and aligned to V entries, or in device memory.
template <int V, class T>
FUSION_FN void fu_take(T (&out)[V], const T* base, int index = 0) {
#if FUSION_CUDA
  // The compiler knows the first, and behind fu_placed<true> the second: of the base, of what follows from it often not.
  if (V * sizeof(T) == 16 && (__isShared(base) || fu_aligned(base))) {
    fu_vector<T, V>::load(out, base + index);
    return;
  }
#endif
  FUSION_UNROLL
  for (int v = 0; v < V; ++v) out[v] = base[index + v];
}

// base[index + v] = in[v]; `base` is aligned to an entry at least, index a multiple of V.
template <int V, class T>
FUSION_FN void fu_keep(T* base, const T (&in)[V], int index = 0) {
#if FUSION_CUDA
  if (V * sizeof(T) == 16 && fu_aligned(base)) {
    if (__isShared(base)) {
      fu_vector<T, V>::store(base + index, in);
    } else {  // in so many words: compilers take plain stores of 16 bytes apart
      uint4 x;
      memcpy(&x, in, 16);
      asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                   :
                   : "l"(__cvta_generic_to_global(base + index)), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
                   : "memory");
    }
    return;
  }
#endif
  FUSION_UNROLL
  for (int v = 0; v < V; ++v) base[index + v] = in[v];
}

// Whether fu_tensor_8x8x4 is there for T: f64 from sm_80 on.
template <class T>
FUSION_FN constexpr bool fu_has_tensor() {
#if FUSION_CUDA && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return sizeof(T) == 8;
#else
  return false;
#endif
}
// By all lanes of a warp: the 8 x 8 matrix `sum` += x * y with x of 8 x 4, y of 4 x 8. Lane 4 i + j holds x[i][j], y[j][i] and
// sum[i][2 j], sum[i][2 j + 1].
FUSION_FN void fu_tensor_8x8x4(double (&sum)[2], double x, double y) {
#if FUSION_CUDA && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(sum[0]), "+d"(sum[1])
               : "d"(x), "d"(y));
#else
  (void)sum, (void)x, (void)y;
#endif
}
FUSION_FN void fu_tensor_8x8x4(float (&)[2], float, float) {}

// ---- Staging: asynchronous copies to shared memory (sm_80), plain ones elsewhere -----------------------------------

#if FUSION_CUDA && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
FUSION_FN unsigned fu_shared_address(const void* pointer) { return (unsigned)__cvta_generic_to_shared(pointer); }
template <int BYTES>
FUSION_FN void fu_copy_async(void* to, const void* from) {
  if (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(fu_shared_address(to)), "l"(from) : "memory");
  else if (BYTES == 8)
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(fu_shared_address(to)), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(fu_shared_address(to)), "l"(from) : "memory");
}
FUSION_FN void fu_copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N>
FUSION_FN void fu_copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
#else
template <int BYTES>
FUSION_FN void fu_copy_async(void* to, const void* from) {
  if (BYTES == 16) {
    ((long long*)to)[0] = ((const long long*)from)[0];
    ((long long*)to)[1] = ((const long long*)from)[1];
  } else if (BYTES == 8) {
    *(long long*)to = *(const long long*)from;
  } else {
    *(int*)to = *(const int*)from;
  }
}
FUSION_FN void fu_copy_commit() {}
template <int N>
FUSION_FN void fu_copy_wait() {}
#endif

// Starts copying base[index .. index + V) to `to`, zeros beyond limit. The thread that calls it reads it back after
// fu_copy_wait; no barrier is needed for that.
template <int V, class T>
FUSION_FN void fu_stage(T* to, const T* FUSION_RESTRICT base, fu_index index, fu_index limit, bool aligned, bool whole = false) {
  if (V * sizeof(T) == 16 && (whole || (aligned && index + V <= limit))) {
    fu_copy_async<16>(to, base + index);
    return;
  }
  FUSION_UNROLL
  for (int v = 0; v < V; ++v) {
    if (whole || index + v < limit)
      fu_copy_async<sizeof(T)>(to + v, base + index + v);
    else
      to[v] = T(0);
  }
}

// Copies `count` entries between device memory and shared memory with all threads of the block. `to` / `from` in shared
// memory is aligned to 16 bytes. The copy in is asynchronous: fu_copy_commit, fu_copy_wait<0> and a barrier complete it.
template <int THREADS, class T>
FUSION_FN void fu_tile_in(T* to, const T* FUSION_RESTRICT from, fu_index count, int lane) {
#if FUSION_CUDA
  const int per = 16 / (int)sizeof(T);
  fu_index done = 0;
  if (fu_aligned(from)) {
    done = count / per * per;
    for (fu_index i = (fu_index)lane * per; i < done; i += THREADS * per) fu_copy_async<16>(to + i, from + i);
  }
  for (fu_index i = done + lane; i < count; i += THREADS) fu_copy_async<sizeof(T)>(to + i, from + i);
#else
  if (lane == 0) std::memcpy(to, from, count * sizeof(T));
#endif
}
template <int THREADS, class T>
FUSION_FN void fu_tile_out(T* to, const T* from, fu_index count, int lane) {
#if FUSION_CUDA
  const int per = 16 / (int)sizeof(T);
  fu_index done = 0;
  if (fu_aligned(to)) {
    done = count / per * per;
    for (fu_index i = (fu_index)lane * per; i < done; i += THREADS * per)
      *reinterpret_cast<float4*>(to + i) = *reinterpret_cast<const float4*>(from + i);
  }
  for (fu_index i = done + lane; i < count; i += THREADS) to[i] = from[i];
#else
  if (lane == 0) std::memcpy(to, from, count * sizeof(T));
#endif
}

// Of a tile of ELEMENTS elements of ENTRIES entries that lie STRIDE entries apart in shared memory, side by side in device
// memory: its units of 16 bytes. THREADS lanes take one each in a step.
template <int THREADS, int ENTRIES, int STRIDE, int ELEMENTS, class T>
struct fu_tile_units {
  static constexpr int kVector = 16 / (int)sizeof(T), kUnits = ENTRIES / kVector > 0 ? ENTRIES / kVector : 1;  // of an element
  static constexpr int kAll = ELEMENTS * ENTRIES / kVector, kSteps = (kAll + THREADS - 1) / THREADS;
  // Few enough for code without a loop. Kernels that run for a few microseconds are bound by their instructions.
  static constexpr bool kFew = ELEMENTS * ENTRIES % kVector == 0 && kSteps <= 16;
  static FUSION_FN bool present(int lane, int step) { return kAll % THREADS == 0 || lane + step * THREADS < kAll; }
  // Where the unit of a lane lies in shared memory, in entries.
  static FUSION_FN int place(int lane, int step) {
    if (ENTRIES == STRIDE) return (lane + step * THREADS) * kVector;
    if (THREADS % kUnits == 0)
      return lane / kUnits * STRIDE + lane % kUnits * kVector + step * (THREADS / kUnits) * STRIDE;
    if (kUnits % THREADS == 0)
      return lane * kVector + step * THREADS % kUnits * kVector + step * THREADS / kUnits * STRIDE;
    const int unit = lane + step * THREADS;
    return unit / kUnits * STRIDE + unit % kUnits * kVector;
  }
};

// fu_tile_in and fu_tile_out for the first `elements` elements of such a tile. Unless ENTRIES and STRIDE are equal, elements are
// multiples of 16 bytes.
template <int THREADS, int ENTRIES, int STRIDE, int ELEMENTS, class T>
FUSION_FN void fu_elements_in(T* to, const T* FUSION_RESTRICT from, int elements, int lane) {
#if FUSION_CUDA
  typedef fu_tile_units<THREADS, ENTRIES, STRIDE, ELEMENTS, T> units;
  const bool aligned = fu_aligned(from);
  if (units::kFew && aligned && elements == ELEMENTS) {
    FUSION_UNROLL
    for (int step = 0; step < units::kSteps; ++step)
      if (units::present(lane, step))
        fu_copy_async<16>(to + units::place(lane, step), from + (lane + step * THREADS) * units::kVector);
    return;
  }
  if (ENTRIES != STRIDE && aligned) {
    FUSION_NO_UNROLL
    for (int i = lane; i < elements * units::kUnits; i += THREADS)
      fu_copy_async<16>(to + i / units::kUnits * STRIDE + i % units::kUnits * units::kVector, from + (fu_index)i * units::kVector);
    return;
  }
  if (ENTRIES != STRIDE) {
    FUSION_NO_UNROLL
    for (int i = lane; i < elements * ENTRIES; i += THREADS)
      fu_copy_async<sizeof(T)>(to + i / ENTRIES * STRIDE + i % ENTRIES, from + i);
    return;
  }
#else
  if (lane == 0)
    for (int e = 0; ENTRIES != STRIDE && e < elements; ++e)
      std::memcpy(to + e * STRIDE, from + (fu_index)e * ENTRIES, ENTRIES * sizeof(T));
#endif
  if (ENTRIES == STRIDE) fu_tile_in<THREADS>(to, from, (fu_index)elements * ENTRIES, lane);
}
template <int THREADS, int ENTRIES, int STRIDE, int ELEMENTS, class T>
FUSION_FN void fu_elements_out(T* to, const T* from, int elements, int lane) {
#if FUSION_CUDA
  typedef fu_tile_units<THREADS, ENTRIES, STRIDE, ELEMENTS, T> units;
  const bool aligned = fu_aligned(to);
  if (units::kFew && aligned && elements == ELEMENTS) {
    FUSION_UNROLL
    for (int step = 0; step < units::kSteps; ++step)
      if (units::present(lane, step))
        *reinterpret_cast<float4*>(to + (lane + step * THREADS) * units::kVector) =
            *reinterpret_cast<const float4*>(from + units::place(lane, step));
    return;
  }
  if (ENTRIES != STRIDE && aligned) {
    FUSION_NO_UNROLL
    for (int i = lane; i < elements * units::kUnits; i += THREADS)
      *reinterpret_cast<float4*>(to + (fu_index)i * units::kVector) =
          *reinterpret_cast<const float4*>(from + i / units::kUnits * STRIDE + i % units::kUnits * units::kVector);
    return;
  }
  if (ENTRIES != STRIDE) {
    FUSION_NO_UNROLL
    for (int i = lane; i < elements * ENTRIES; i += THREADS) to[i] = from[i / ENTRIES * STRIDE + i % ENTRIES];
    return;
  }
#else
  if (lane == 0)
    for (int e = 0; ENTRIES != STRIDE && e < elements; ++e)
      std::memcpy(to + (fu_index)e * ENTRIES, from + e * STRIDE, ENTRIES * sizeof(T));
#endif
  if (ENTRIES == STRIDE) fu_tile_out<THREADS>(to, from, (fu_index)elements * ENTRIES, lane);
}

// For code that does something again to be timed: what compilers must not find to be the same every time, because it would change
// under a condition that never holds and that they do not know. (An empty asm statement is none to ptxas.)
template <class T, int N, int M>
FUSION_FN void fu_disturb(T (&values)[N], const T (&by)[M]) {
  FUSION_UNROLL
  for (int k = 0; k < (N > M ? N : M); ++k) values[k % N] += by[k % M];
}
FUSION_FN void fu_forget_memory() { asm volatile("" : : : "memory"); }

// ---- Windows: bulk copies to shared memory (sm_90), plain ones elsewhere ---------------------------------------------
//
// A window is the least range of 16-byte units of device memory that holds a range of entries; so its copy in shared memory
// begins up to 15 bytes before the first entry. One lane of a warp copies, all of its lanes wait and read.

typedef unsigned long long fu_barrier;  // an mbarrier in shared memory

// Entries between the begin of the window of `from` and `from`.
template <class T>
FUSION_FN int fu_window_shift(const T* from) {
  return (int)((unsigned long long)from & 15) / (int)sizeof(T);
}
// out[v] = from[v]; `from` is in shared memory, aligned to an entry at least.
template <int V, class T>
FUSION_FN void fu_window_read(T (&out)[V], const T* from) {
#if FUSION_CUDA
  if (V * sizeof(T) == 16 && fu_aligned(from)) {
    fu_take<V>(out, from);
    return;
  }
#endif
  FUSION_UNROLL
  for (int v = 0; v < V; ++v) out[v] = from[v];
}

#if FUSION_CUDA && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
FUSION_FN void fu_window_init(fu_barrier* barrier, int lane) {
  if (lane % 32 == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(fu_shared_address(barrier)) : "memory");
}
// After the last fu_window_init of a warp: its lanes, and the copy engine, see the barriers and may write the windows; and the
// copy engine reads what an earlier sweep of the kernel wrote to device memory.
FUSION_FN void fu_window_init_end() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncwarp();
}
// After the last wait, by the warp: its barrier's memory may be used otherwise, also as another barrier.
FUSION_FN void fu_window_end(fu_barrier* barrier, int lane) {
  __syncwarp();
  if (lane % 32 == 0)
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(fu_shared_address(barrier)) : "memory");
}
FUSION_FN void fu_window_copy(void* to, const void* from, unsigned bytes, fu_barrier* barrier) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(fu_shared_address(barrier)), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   fu_shared_address(to)),
               "l"(from), "r"(bytes), "r"(fu_shared_address(barrier))
               : "memory");
}
FUSION_FN void fu_window_arrive(fu_barrier* barrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(fu_shared_address(barrier)) : "memory");
}
FUSION_FN void fu_window_wait(fu_barrier* barrier, int parity) {
  unsigned done;
  do {
    asm volatile(
        "{\n  .reg .pred p;\n  mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n"
        "  selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(fu_shared_address(barrier)), "r"(parity)
        : "memory");
  } while (!done);
}
#else
FUSION_FN void fu_window_init(fu_barrier*, int) {}
FUSION_FN void fu_window_init_end() {}
FUSION_FN void fu_window_end(fu_barrier*, int) {}
FUSION_FN void fu_window_copy(void* to, const void* from, unsigned bytes, fu_barrier*) {
  for (unsigned i = 0; i < bytes / 4; ++i) ((int*)to)[i] = ((const int*)from)[i];
}
FUSION_FN void fu_window_arrive(fu_barrier*) {}
FUSION_FN void fu_window_wait(fu_barrier*, int) {
#if FUSION_CUDA
  __syncwarp();  // the lane that copied has done so
#endif
}
#endif

// Starts copying the window of base[first .. first + count) to `window`, which is aligned to 16 bytes. Nothing outside of
// base[0 .. total) is read: entries of a unit that lies across its begin or end are copied one by one. Called by one lane.
template <class T>
FUSION_FN void fu_window_fetch(T* window, const T* base, fu_index first, fu_index count, fu_index total,
                               fu_barrier* barrier) {
  if (count <= 0) return;
  const T* from = base + first;
  const int shift = fu_window_shift(from), per = 16 / (int)sizeof(T);
  fu_index begin = -shift, end = (shift + count + per - 1) / per * per - shift;  // of the window, relative to `from`
  fu_index bulk_begin = first + begin < 0 ? begin + per : begin;
  fu_index bulk_end = first + end > total ? end - per : end;
  for (fu_index i = 0; i < bulk_begin && i < count; ++i) window[shift + i] = from[i];
  for (fu_index i = bulk_end < bulk_begin ? bulk_begin : bulk_end; i < count; ++i)
    if (i >= 0) window[shift + i] = from[i];
  if (bulk_end > bulk_begin)
    fu_window_copy(window + shift + bulk_begin, from + bulk_begin, (unsigned)((bulk_end - bulk_begin) * sizeof(T)), barrier);
}

// ---- Collectives ---------------------------------------------------------------------------------------------------

#if FUSION_CUDA
FUSION_FN float fu_shuffle_xor(float value, int mask) { return __shfl_xor_sync(~0u, value, mask); }
FUSION_FN double fu_shuffle_xor(double value, int mask) { return __shfl_xor_sync(~0u, value, mask); }
template <class T>
FUSION_FN T fu_shuffle_xor(T value, int mask) {  // fu_arg_max::Acc
  T other;
  other.value = __shfl_xor_sync(~0u, value.value, mask);
  other.index = __shfl_xor_sync(~0u, value.index, mask);
  return other;
}

// Combines the values of all THREADS threads of a group (a warp, or the whole block); every thread gets the result.
// `scratch` holds 32 entries; calls take turns with two of them, so that one barrier a call is enough.
template <class M, int THREADS>
FUSION_FN typename M::Acc fu_group_reduce(typename M::Acc value, typename M::Acc* scratch) {
  FUSION_UNROLL
  for (int mask = 16; mask > 0; mask >>= 1) value = M::combine(value, fu_shuffle_xor(value, mask));
  if (THREADS == 32) return value;
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = value;
  __syncthreads();
  value = (threadIdx.x & 31) < THREADS / 32 ? scratch[threadIdx.x & 31] : M::identity();
  FUSION_UNROLL
  for (int mask = 16; mask > 0; mask >>= 1) value = M::combine(value, fu_shuffle_xor(value, mask));
  return value;
}
FUSION_FN float fu_shuffle(float value, int lane) { return __shfl_sync(~0u, value, lane); }
FUSION_FN double fu_shuffle(double value, int lane) { return __shfl_sync(~0u, value, lane); }
template <class T>
FUSION_FN T fu_shuffle(T value, int lane) {  // fu_arg_max::Acc
  T other;
  other.value = __shfl_sync(~0u, value.value, lane);
  other.index = __shfl_sync(~0u, value.index, lane);
  return other;
}
// The same for COUNT values at once, a power of two up to 32; `scratch` holds 32 x COUNT entries. Lanes halve the values
// among them while they combine: COUNT - 1 + log2(32 / COUNT) shuffles instead of 5 x COUNT.
template <class M, int THREADS, int COUNT>
FUSION_FN void fu_group_reduce_many(const typename M::Acc (&values)[COUNT], typename M::Acc (&totals)[COUNT],
                                    typename M::Acc* scratch) {
  typedef typename M::Acc Acc;
  const int lane = threadIdx.x & 31;
  Acc mine[COUNT];
  FUSION_UNROLL
  for (int i = 0; i < COUNT; ++i) mine[i] = values[i];
  FUSION_UNROLL
  for (int left = COUNT; left > 1; left /= 2) {
    const int mask = 16 * left / COUNT;
    const bool upper = (lane & mask) != 0;
    FUSION_UNROLL
    for (int i = 0; i < COUNT / 2; ++i) {  // a bound that varies with `left` is not unrolled, and puts the array into memory
      if (i >= left / 2) continue;
      const Acc low = mine[i], high = mine[i + left / 2];
      mine[i] = M::combine(upper ? high : low, fu_shuffle_xor(upper ? low : high, mask));
    }
  }
  FUSION_UNROLL
  for (int mask = 16 / COUNT; mask > 0; mask >>= 1) mine[0] = M::combine(mine[0], fu_shuffle_xor(mine[0], mask));
  // Now mine[0] is the warp's result number lane / (32 / COUNT).
  const int warps = THREADS / 32;
  if (warps == 1) {
    FUSION_UNROLL
    for (int i = 0; i < COUNT; ++i) totals[i] = fu_shuffle(mine[0], i * (32 / COUNT));
    return;
  }
  // The warps' parts of a result lie together, rotated by its number: lanes that read different results meet in no bank.
  constexpr int kLanes = 32 / COUNT;  // of a result
  const int result = lane / kLanes, part = lane % kLanes;
  if (part == 0) scratch[result * warps + ((threadIdx.x >> 5) + result) % warps] = mine[0];
  __syncthreads();
  Acc value = M::identity();
  FUSION_UNROLL
  for (int warp = 0; warp < warps; warp += kLanes)
    if (warps % kLanes == 0 || warp + part < warps) value = M::combine(value, scratch[result * warps + (warp + part + result) % warps]);
  FUSION_UNROLL
  for (int mask = kLanes / 2; mask > 0; mask >>= 1) value = M::combine(value, fu_shuffle_xor(value, mask));
  FUSION_UNROLL
  for (int i = 0; i < COUNT; ++i) totals[i] = fu_shuffle(value, i * kLanes);
}
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900  // also where nvcc reads the text for the host
// Barrier of all threads of a cluster: what any wrote to the shared memory of its blocks before, all read after.
FUSION_FN void fu_cluster_barrier() {  // sm_90
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// Before the first access to the shared memory of another block of the cluster, which must have begun.
FUSION_FN void fu_cluster_begin() { fu_cluster_barrier(); }
// *to = value, in the block `rank` of the cluster; `to` is the address of the same variable in this block.
template <class T>
FUSION_FN void fu_cluster_put(T* to, const T& value, int rank) {
  unsigned long long remote;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(remote) : "l"(to), "r"(rank));
  *(T*)remote = value;
}
// As fu_group_reduce, over the BLOCKS blocks of THREADS threads of a cluster: each warp gives its part to all blocks.
// `scratch` holds BLOCKS x THREADS / 32 entries.
template <class M, int THREADS, int BLOCKS>
FUSION_FN typename M::Acc fu_cluster_reduce(typename M::Acc value, typename M::Acc* scratch) {
  const int warps = THREADS / 32, lane = threadIdx.x & 31, own = (int)(blockIdx.x % BLOCKS) * warps + (int)(threadIdx.x >> 5);
  FUSION_UNROLL
  for (int mask = 16; mask > 0; mask >>= 1) value = M::combine(value, fu_shuffle_xor(value, mask));
  if (lane < BLOCKS) fu_cluster_put(scratch + own, value, lane);
  fu_cluster_barrier();
  value = M::identity();
  FUSION_UNROLL
  for (int first = 0; first < BLOCKS * warps; first += 32)
    if (first + lane < BLOCKS * warps) value = M::combine(value, scratch[first + lane]);
  FUSION_UNROLL
  for (int mask = 16; mask > 0; mask >>= 1) value = M::combine(value, fu_shuffle_xor(value, mask));
  return value;
}
// The same for COUNT values at once; `scratch` holds COUNT times as many.
template <class M, int THREADS, int BLOCKS, int COUNT>
FUSION_FN void fu_cluster_reduce_many(const typename M::Acc (&values)[COUNT], typename M::Acc (&totals)[COUNT],
                                      typename M::Acc* scratch) {
  const int parts = BLOCKS * THREADS / 32, lane = threadIdx.x & 31,
            own = (int)(blockIdx.x % BLOCKS) * (THREADS / 32) + (int)(threadIdx.x >> 5);
  FUSION_UNROLL
  for (int i = 0; i < COUNT; ++i) {
    typename M::Acc value = values[i];
    FUSION_UNROLL
    for (int mask = 16; mask > 0; mask >>= 1) value = M::combine(value, fu_shuffle_xor(value, mask));
    if (lane < BLOCKS) fu_cluster_put(scratch + i * parts + own, value, lane);
  }
  fu_cluster_barrier();
  FUSION_UNROLL
  for (int i = 0; i < COUNT; ++i) {
    typename M::Acc value = M::identity();
    FUSION_UNROLL
    for (int first = 0; first < parts; first += 32)
      if (first + lane < parts) value = M::combine(value, scratch[i * parts + first + lane]);
    FUSION_UNROLL
    for (int mask = 16; mask > 0; mask >>= 1) value = M::combine(value, fu_shuffle_xor(value, mask));
    totals[i] = value;
  }
}
#endif
// Shared memory of the lane's own block in a cluster of blocks of THREADS lanes.
template <int THREADS>
FUSION_FN char* fu_block_shared(char* shared, int, fu_index) {
  return shared;
}
FUSION_FN void fu_warp_barrier() { __syncwarp(); }
// First in every kernel, by all threads (sm_90). Nothing of device memory is touched before the launch before this one is
// complete. With the attribute of programmatic stream serialization the blocks of this one may have come here before: when all
// of the one before have ended or, if that is called so with EARLY, have come here. In other launches it does nothing.
template <bool EARLY>
FUSION_FN void fu_launch_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if (EARLY) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Barrier of all threads of a cooperative launch, as cooperative_groups::grid_group::sync() does it (CUDA Toolkit,
// cooperative_groups/details): the driver gives the launch a word in device memory; block 0 adds what flips its highest bit
// when all others have added one. What any thread wrote before, all threads read after.
// In two halves: what a thread wrote before it arrived, all read after they waited. Between the two a thread may do anything
// but arrive again.
FUSION_FN unsigned* fu_grid_word() {
  unsigned high, low;
  asm volatile("mov.u32 %0, %%envreg1;" : "=r"(high));
  asm volatile("mov.u32 %0, %%envreg2;" : "=r"(low));
  return (unsigned*)(((unsigned long long)high << 32) | low) + 1;
}
// `wrote`: whether the block wrote anything that others read; if not, it need not wait until that is seen.
FUSION_FN unsigned fu_grid_arrive(bool wrote) {
  unsigned before = 0;
  if (gridDim.x == 1) return before;  // the barrier of the block is enough
  if (wrote) __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned add = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1) : 1u;
    if (wrote)
      asm volatile("atom.add.release.gpu.u32 %0, [%1], %2;" : "=r"(before) : "l"(fu_grid_word()), "r"(add) : "memory");
    else
      asm volatile("atom.add.relaxed.gpu.u32 %0, [%1], %2;" : "=r"(before) : "l"(fu_grid_word()), "r"(add) : "memory");
  }
  return before;
}
FUSION_FN void fu_grid_wait(unsigned before) {
  if (threadIdx.x == 0 && gridDim.x > 1) {
    const unsigned* word = fu_grid_word();
    unsigned now;
    do {
      asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(now) : "l"(word) : "memory");
    } while (((before ^ now) & 0x80000000u) == 0);
  }
  __syncthreads();
}
FUSION_FN void fu_grid_barrier() { fu_grid_wait(fu_grid_arrive(true)); }
template <int THREADS>
FUSION_FN void fu_group_barrier() {
  if (THREADS == 32)
    __syncwarp();
  else
    __syncthreads();
}
#else
FUSION_FN void fu_warp_barrier() {}
template <int THREADS>  // those of the blocks lie one behind the other
FUSION_FN char* fu_block_shared(char* shared, int lane, fu_index bytes) {
  return shared + lane / THREADS * bytes;
}
FUSION_FN fu_index fu_larger(fu_index a, fu_index b) { return a < b ? b : a; }
// The shared memory of a block on the host: one buffer per OpenMP thread, kept between calls.
static inline void* fu_host_shared(unsigned long long bytes) {
  struct Buffer {
    void* data = nullptr;
    unsigned long long size = 0;
    ~Buffer() { std::free(data); }
  };
  static thread_local Buffer buffer;
  if (buffer.size < bytes) {
    std::free(buffer.data);
    buffer.size = (bytes + 4095) / 4096 * 4096;
    buffer.data = std::aligned_alloc(64, buffer.size);
    if (!buffer.data) std::abort();
  }
  return buffer.data;
}
#endif

// ---- Elements exchanged among the lanes of a warp --------------------------------------------------------------------
// Elements of UNITS times 16 bytes, UNITS a power of two. A warp accesses those of its 32 lanes in order, 512 bytes at a time,
// and UNITS neighbouring lanes exchange what each of them got. All lanes take part, also those beyond the last element.

// The element that a lane holds then, as the number of another lane of its warp.
template <int UNITS>
FUSION_FN int fu_exchanged_element(int lane) {
#if FUSION_CUDA
  return lane / 32 * 32 + lane % UNITS * (32 / UNITS) + lane % 32 / UNITS;
#else
  return lane;
#endif
}

#if FUSION_CUDA
// Of lanes whose numbers differ in bit MASK alone, the lower one's units with that bit go for the upper one's without it.
template <int UNITS, int V, int MASK, class T>
FUSION_FN void fu_exchange_pairs(T (&values)[UNITS * V], int lane) {
  const bool upper = (lane & MASK) != 0;
  FUSION_UNROLL
  for (int i = 0; i < UNITS; ++i) {
    if (i & MASK) continue;
    FUSION_UNROLL
    for (int v = 0; v < V; ++v) {
      T &low = values[i * V + v], &high = values[(i | MASK) * V + v];
      const T other = fu_shuffle_xor(upper ? low : high, MASK);
      low = upper ? other : low;
      high = upper ? high : other;
    }
  }
}
// Of UNITS neighbouring lanes, number i gets as its unit k (V entries) what was unit i of number k.
template <int UNITS, int V, class T>
FUSION_FN void fu_exchange_units(T (&values)[UNITS * V], int lane) {
  if (UNITS > 1) fu_exchange_pairs<UNITS, V, 1>(values, lane);
  if (UNITS > 2) fu_exchange_pairs<UNITS, V, 2>(values, lane);
  if (UNITS > 4) fu_exchange_pairs<UNITS, V, 4>(values, lane);
}
#endif

// The element of lane `lane`, of those from `first` on of `count` in all, zeros beyond. `aligned`: base is aligned to 16 bytes.
template <int UNITS, class T, int ENTRIES>
FUSION_FN void fu_load_exchanged(T (&out)[ENTRIES], const T* FUSION_RESTRICT base, fu_index first, fu_index count, int lane,
                                 bool aligned) {
  constexpr int V = ENTRIES / UNITS;
#if FUSION_CUDA
  const fu_index warp = first + lane / 32 * 32;
  if (aligned && warp + 32 <= count) {
    FUSION_UNROLL
    for (int i = 0; i < UNITS; ++i)
      fu_load<V>(*(T(*)[V])(out + i * V), base, (warp * UNITS + i * 32 + lane % 32) * V, count * ENTRIES, true, true);
    fu_exchange_units<UNITS, V>(out, lane);
    return;
  }
#endif
  const fu_index element = first + fu_exchanged_element<UNITS>(lane);
  FUSION_UNROLL
  for (int i = 0; i < UNITS; ++i) fu_load<V>(*(T(*)[V])(out + i * V), base, element * ENTRIES + i * V, count * ENTRIES, aligned);
}
template <int UNITS, class T, int ENTRIES>
FUSION_FN void fu_store_exchanged(T* base, const T (&in)[ENTRIES], fu_index first, fu_index count, int lane, bool aligned) {
  constexpr int V = ENTRIES / UNITS;
#if FUSION_CUDA
  const fu_index warp = first + lane / 32 * 32;
  if (aligned && warp + 32 <= count) {
    T units[ENTRIES];
    FUSION_UNROLL
    for (int k = 0; k < ENTRIES; ++k) units[k] = in[k];
    fu_exchange_units<UNITS, V>(units, lane);
    FUSION_UNROLL
    for (int i = 0; i < UNITS; ++i)
      fu_store<V>(base, *(const T(*)[V])(units + i * V), (warp * UNITS + i * 32 + lane % 32) * V, count * ENTRIES, true, true);
    return;
  }
#endif
  const fu_index element = first + fu_exchanged_element<UNITS>(lane);
  FUSION_UNROLL
  for (int i = 0; i < UNITS; ++i)
    fu_store<V>(base, *(const T(*)[V])(in + i * V), element * ENTRIES + i * V, count * ENTRIES, aligned);
}

#endif  // FUSION_DEVICE_H_
