// How much of data larger than the L2 cache stays in it from one run of a kernel to the next, by what loads
// ask of it. Compile and run on the GPU machine, or compile elsewhere:
//
//   nvcc -O3 -std=c++17 -arch=sm_90 -o l2_policies tests/bench/device/l2_policies.cu && ./l2_policies
//
// Reads buffers of several sizes, 20 times in one CUDA graph, and prints us a read (median of 12 graphs):
// plain; a share of the lines given up last and the others first; the others first alone; and the same by 4
// KB of addresses instead of the hardware's choice of lines. server/search (L2Percent) and fu_load_kept go by
// it: docs/decisions/0021.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kThreads = 256, kLoads = 8, kRuns = 20, kGraphs = 12, kWarmGraphs = 3;
constexpr double kMegabyte = 1e6;

#define CHECK(call)                                                         \
  do {                                                                      \
    const cudaError_t error = (call);                                       \
    if (error != cudaSuccess) {                                             \
      std::fprintf(stderr, "l2_policies: %s\n", cudaGetErrorString(error)); \
      std::exit(1);                                                         \
    }                                                                       \
  } while (0)

enum class Policy { kPlain, kLastAndFirst, kFirst, kFirstByAddress };

template <Policy P>
__device__ uint4 Load(const uint4* at, unsigned long long policy, unsigned kept_of_128) {
  uint4 x;
  const bool kept =
      (static_cast<unsigned>(reinterpret_cast<size_t>(at) >> 12) * 2654435769u) >> 25 < kept_of_128;
  if (P == Policy::kPlain || (P == Policy::kFirstByAddress && kept))
    asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(at));
  else
    asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(at), "l"(policy));
  return x;
}

// Each block reads a part of its own; `never` is written to if the sum is what it is not.
template <Policy P>
__global__ void __launch_bounds__(kThreads)
    ReadAll(const uint4* data, size_t count, float share, unsigned* never) {
  unsigned long long policy = 0;
  if (P == Policy::kLastAndFirst)
    asm("createpolicy.fractional.L2::evict_last.L2::evict_first.b64 %0, %1;" : "=l"(policy) : "f"(share));
  if (P == Policy::kFirst)
    asm("createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %0, %1;"
        : "=l"(policy)
        : "f"(1 - share));
  if (P == Policy::kFirstByAddress)
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  const auto kept_of_128 = static_cast<unsigned>(share * 128);
  const size_t part = (count + gridDim.x - 1) / gridDim.x, begin = blockIdx.x * part,
               end = min(count, begin + part);
  unsigned sum = 0;
  for (size_t i = begin + threadIdx.x; i < end; i += kThreads * kLoads) {
    uint4 x[kLoads];
#pragma unroll
    for (int u = 0; u < kLoads; ++u) {
      const size_t j = i + u * kThreads;
      x[u] = j < end ? Load<P>(data + j, policy, kept_of_128) : make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (int u = 0; u < kLoads; ++u) sum ^= x[u].x ^ x[u].y ^ x[u].z ^ x[u].w;
  }
  if (sum == 0x12345679) *never = sum;
}

// Microseconds a read.
template <Policy P>
double Time(const uint4* data, size_t count, float share, unsigned* never, int blocks) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaEvent_t begin, end;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < kRuns; ++i) ReadAll<P><<<blocks, kThreads, 0, stream>>>(data, count, share, never);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  std::vector<double> times;
  for (int i = 0; i < kWarmGraphs + kGraphs; ++i) {
    CHECK(cudaEventRecord(begin, stream));
    CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaEventRecord(end, stream));
    CHECK(cudaEventSynchronize(end));
    float milliseconds = 0;
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    if (i >= kWarmGraphs) times.push_back(milliseconds * 1e3 / kRuns);
  }
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(stream));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

int main() {
  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  const size_t cache = device.l2CacheSize;
  std::printf("%s, L2 %zu MiB; us a read\n", device.name, cache >> 20);
  for (const int blocks_each : {2, 4, 8})
    for (const double megabytes : {33.6, 50.3, 67.1, 75.5, 100.7}) {
      const size_t bytes = static_cast<size_t>(megabytes * kMegabyte) / sizeof(uint4) * sizeof(uint4);
      const size_t count = bytes / sizeof(uint4);
      const int blocks = device.multiProcessorCount * blocks_each;
      uint4* data = nullptr;
      unsigned* never = nullptr;
      CHECK(cudaMalloc(&data, bytes));
      CHECK(cudaMalloc(&never, sizeof *never));
      CHECK(cudaMemset(data, 1, bytes));
      std::printf("%.1f MB, %d blocks a multiprocessor: plain %.2f\n", megabytes, blocks_each,
                  Time<Policy::kPlain>(data, count, 0, never, blocks));
      for (const float share : {0.2f, 0.25f, 0.3f, 0.35f, 0.4f, 0.45f, 0.5f, 0.6f, 0.7f, 0.8f})
        if (share * bytes < 1.1 * cache)
          std::printf("  %2.0f %% (%4.1f MB)  last and first %6.2f  first %6.2f  first, by address %6.2f\n",
                      share * 100, share * megabytes,
                      Time<Policy::kLastAndFirst>(data, count, share, never, blocks),
                      Time<Policy::kFirst>(data, count, share, never, blocks),
                      Time<Policy::kFirstByAddress>(data, count, share, never, blocks));
      CHECK(cudaFree(data));
      CHECK(cudaFree(never));
    }
  return 0;
}
