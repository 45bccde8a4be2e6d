// What the threads of a group, a block, a cluster or a grid do together: reductions, barriers, the begin of a launch. Included by
// fusion_device.h.
#ifndef FUSION_COLLECTIVES_H_
#define FUSION_COLLECTIVES_H_

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

// The lanes of the thread's group in its warp: THREADS, a power of two up to 32, that begin at a multiple of it. Groups of a
// warp may have different numbers of rows, so each waits for its own lanes alone.
template <int THREADS>
FUSION_FN unsigned fu_group_lanes() {
  return THREADS >= 32 ? ~0u : ((1u << (THREADS & 31)) - 1) << (threadIdx.x & (32 - THREADS) & 31);
}
FUSION_FN float fu_shuffle_xor(float value, int mask, unsigned lanes) { return __shfl_xor_sync(lanes, value, mask); }
FUSION_FN double fu_shuffle_xor(double value, int mask, unsigned lanes) { return __shfl_xor_sync(lanes, value, mask); }
template <class T>
FUSION_FN T fu_shuffle_xor(T value, int mask, unsigned lanes) {
  T other;
  other.value = __shfl_xor_sync(lanes, value.value, mask);
  other.index = __shfl_xor_sync(lanes, value.index, mask);
  return other;
}

// Combines the values of all THREADS threads of a group (a part of a warp, a warp, or the whole block); every thread gets the
// result.
// `scratch` holds 32 entries; calls take turns with two of them, so that one barrier a call is enough.
template <class M, int THREADS>
FUSION_FN typename M::Acc fu_group_reduce(typename M::Acc value, typename M::Acc* scratch) {
  FUSION_UNROLL
  for (int mask = THREADS < 32 ? THREADS / 2 : 16; mask > 0; mask >>= 1)
    value = M::combine(value, fu_shuffle_xor(value, mask, fu_group_lanes<THREADS>()));
  if (THREADS <= 32) return value;
  if ((threadIdx.x & 31) == 0) scratch[threadIdx.x >> 5] = value;
  __syncthreads();
  value = (threadIdx.x & 31) < (THREADS + 31) / 32 ? scratch[threadIdx.x & 31] : M::identity();
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
  if (THREADS < 32) {
    FUSION_UNROLL
    for (int i = 0; i < COUNT; ++i) totals[i] = fu_group_reduce<M, THREADS>(values[i], scratch);
    return;
  }
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
  const int warps = THREADS < 32 ? 1 : THREADS / 32;
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
  if (THREADS <= 32)
    __syncwarp(fu_group_lanes<THREADS>());
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
// Combines what the lanes hold, an entry each, STRIDE apart, and overwrites it: in a tree, whose steps are vectors, where
// one lane after the other would wait for each sum before the next.
template <class M, int STRIDE = 1>
FUSION_FN typename M::Acc fu_lanes_reduce(typename M::Acc* lanes, int count) {
  while (count > 1) {
    const int rest = (count + 1) / 2;
    #pragma GCC ivdep
    for (int lane = 0; lane < count - rest; ++lane)
      lanes[lane * STRIDE] = M::combine(lanes[lane * STRIDE], lanes[(lane + rest) * STRIDE]);
    count = rest;
  }
  return lanes[0];
}
// The shared memory of a block on the host: one buffer per OpenMP thread and place in the source (LINE), kept
// between calls. At first it is full of NaN, so that a kernel that reads what it never wrote gives no right result
// by luck.
template <int LINE>
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
    std::memset(buffer.data, 0xff, buffer.size);
  }
  return buffer.data;
}
#endif

#endif  // FUSION_COLLECTIVES_H_
