// Copies to shared memory and back: asynchronous (sm_80), in bulk (sm_90), plain elsewhere; and what keeps compilers from
// leaving out repetitions that are timed. Included by fusion_device.h after fusion_memory.h.
#ifndef FUSION_STAGING_H_
#define FUSION_STAGING_H_

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
  FUSION_AT_ONCE(to, BYTES);
  FUSION_AT_ONCE(from, BYTES);
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

// Starts copying from[index .. index + V) to `to`, which is aligned to 16 bytes; zeros where an index is not in [0, limit).
// fu_copy_commit, fu_copy_wait<0> and a barrier complete it.
template <int V, class T>
FUSION_FN void fu_part_in(T* to, const T* FUSION_RESTRICT from, fu_index index, fu_index limit) {
  if (V * sizeof(T) == 16 && index >= 0 && index + V <= limit && (unsigned long long)(from + index) % 16 == 0) {
    fu_copy_async<16>(to, from + index);
    return;
  }
  FUSION_UNROLL
  for (int v = 0; v < V; ++v) {
    if (index + v >= 0 && index + v < limit)
      fu_copy_async<sizeof(T)>(to + v, from + index + v);
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
  FUSION_AT_ONCE(to, 16);
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
  FUSION_AT_ONCE(from, 16);
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
  FUSION_AT_ONCE(to, 16);
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
  FUSION_AT_ONCE(from, 16);
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
// The number, of which a compiler knows nothing.
FUSION_FN fu_index fu_unknown(fu_index number) {
#if FUSION_CUDA
  asm volatile("" : "+l"(number));
#else
  asm volatile("" : "+r"(number));
#endif
  return number;
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
  FUSION_AT_ONCE(to, 16);
  FUSION_AT_ONCE(from, 16);
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
  // At most three entries each, at the ends of the matrix alone. Unrolled they are a third of what a compiler does.
  FUSION_NO_UNROLL
  for (fu_index i = 0; i < bulk_begin && i < count; ++i) window[shift + i] = from[i];
  FUSION_NO_UNROLL
  for (fu_index i = bulk_end < bulk_begin ? bulk_begin : bulk_end; i < count; ++i)
    if (i >= 0) window[shift + i] = from[i];
  if (bulk_end > bulk_begin)
    fu_window_copy(window + shift + bulk_begin, from + bulk_begin, (unsigned)((bulk_end - bulk_begin) * sizeof(T)), barrier);
}

#endif  // FUSION_STAGING_H_
