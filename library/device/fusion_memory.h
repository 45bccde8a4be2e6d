// Loads and stores of V consecutive entries, plain and with hints, and additions by many threads to the same. Included by
// fusion_device.h.
#ifndef FUSION_MEMORY_H_
#define FUSION_MEMORY_H_

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
#else
  if (whole || (aligned && index + V <= limit)) FUSION_AT_ONCE(base + index, V * sizeof(T));
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
#else
  if (whole || (aligned && index + V <= limit)) FUSION_AT_ONCE(base + index, V * sizeof(T));
#endif
  FUSION_UNROLL
  for (int v = 0; v < V; ++v)
    if (whole || index + v < limit) base[index + v] = in[v];
}

// As fu_load, of something that the kernel only reads: PERCENT of its lines stay in the L2 cache for the next run of the kernel,
// since the others are given up first (createpolicy.fractional, sm_80). What is larger than the cache and read in the same
// order each time would otherwise push itself out before it is read again. LAST: they are also given up last.
template <int V, int PERCENT, bool LAST, class T>
FUSION_FN void fu_load_kept(T (&out)[V], const T* FUSION_RESTRICT base, fu_index index, fu_index limit, bool aligned,
                            bool whole = false) {
#if FUSION_CUDA && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if (V * sizeof(T) == 16 && (whole || (aligned && index + V <= limit))) {
    unsigned long long policy;
    if (LAST)
      asm("createpolicy.fractional.L2::evict_last.L2::evict_first.b64 %0, %1;" : "=l"(policy) : "f"(PERCENT / 100.0f));
    else
      asm("createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %0, %1;"
          : "=l"(policy)
          : "f"(1 - PERCENT / 100.0f));
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
// base[index + v] += in[v] for entries below `limit`, with other threads adding to them too. Sums are f64: as many groups add to
// one as the grid has, each with a rounding of what is there by then.
template <int V, class T>
FUSION_FN void fu_atomic_add(double* base, const T (&in)[V], fu_index index, fu_index limit) {
  FUSION_UNROLL
  for (int v = 0; v < V; ++v)
    if (index + v < limit) fu_atomic_add(base + index + v, (double)in[v]);
}

// `pointer`, of which the compiler is to know that it permits 16-byte accesses.
template <bool ALIGNED, class T>
FUSION_FN T* fu_placed(T* pointer) {
  if (ALIGNED) FUSION_AT_ONCE(pointer, 16);
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

#if !FUSION_CUDA
// Has the cache lines of `count` entries fetched, to be written or read, while other things are computed. They may lie beyond all data.
template <int write, class T>
FUSION_FN void fu_fetch(const T* entries, fu_index count) {
  for (fu_index i = 0; i < count; i += 64 / (fu_index)sizeof(T)) __builtin_prefetch(entries + i, write);
}
#endif

#endif  // FUSION_MEMORY_H_
