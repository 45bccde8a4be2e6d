// What a device's launches, barriers, atomic additions and loads cost: where the constants of server/search
// and server/model and the figures of docs/decisions on grids and barriers come from. Compile and run on the
// GPU machine, or compile elsewhere:
//
//   nvcc -O3 -std=c++17 -arch=sm_90 -I . -o device_limits tests/bench/device/device_limits.cu &&
//   ./device_limits
//
// Prints one line per figure; times are medians. "graph": 20 calls captured into one CUDA graph, per call.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "library/device/fusion_device.h"

namespace {

void Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

constexpr size_t kFlushBytes = size_t{256} << 20;
constexpr size_t kVector = size_t{1} << 26;          // entries of the large vectors
constexpr size_t kCached = (size_t{16} << 20) / 16;  // float4 of 16 MiB

__global__ void Empty() {}

__global__ void Dependent() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

template <int COUNT>
__global__ void __launch_bounds__(1024, 1) Barriers() {
  for (int i = 0; i < COUNT; ++i) fu_grid_barrier();
}

// Every block adds to the same columns, as a row panel does with its column sums.
__global__ void __launch_bounds__(512, 1) Atomics(float* columns, fu_index count) {
  const float ones[4] = {1, 1, 1, 1};
  for (fu_index j = 4 * threadIdx.x; j < count; j += 4 * blockDim.x)
    fu_atomic_add<4>(columns, ones, j, count, true);
}

__global__ void __launch_bounds__(512) Read(const float4* from, size_t count, float* sink) {
  float sum = 0;
  const size_t stride = size_t{gridDim.x} * blockDim.x;
  size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  for (; i + 7 * stride < count; i += 8 * stride) {
    float4 x[8];
#pragma unroll
    for (int u = 0; u < 8; ++u) x[u] = from[i + u * stride];
#pragma unroll
    for (int u = 0; u < 8; ++u) sum += x[u].x + x[u].y + x[u].z + x[u].w;
  }
  for (; i < count; i += stride) sum += from[i].x;
  if (sum == 1.2345f) *sink = sum;  // keeps the loads
}

// x = w + y + z over tiles of 256 x 2 vectors; a grid of as many blocks as tiles, or a persistent one.
__global__ void __launch_bounds__(256)
    Add(const float4* w, const float4* y, const float4* z, float4* x, size_t count) {
  for (size_t base = size_t{blockIdx.x} * 512 + threadIdx.x; base < count; base += size_t{gridDim.x} * 512) {
    float4 a[2], b[2], c[2];
#pragma unroll
    for (int u = 0; u < 2; ++u)
      if (base + u * 256 < count)
        a[u] = w[base + u * 256], b[u] = y[base + u * 256], c[u] = z[base + u * 256];
#pragma unroll
    for (int u = 0; u < 2; ++u)
      if (base + u * 256 < count)
        x[base + u * 256] = make_float4(a[u].x + b[u].x + c[u].x, a[u].y + b[u].y + c[u].y,
                                        a[u].z + b[u].z + c[u].z, a[u].w + b[u].w + c[u].w);
  }
}

// x = w, one tile a block; STREAMING: loads marked as not to be kept in the caches.
template <int VECTORS, bool STREAMING>
__global__ void __launch_bounds__(256) Copy(const float4* w, float4* x) {
  const size_t base = size_t{blockIdx.x} * (256 * VECTORS) + threadIdx.x;
  float4 a[VECTORS];
#pragma unroll
  for (int u = 0; u < VECTORS; ++u) a[u] = STREAMING ? __ldcs(w + base + u * 256) : w[base + u * 256];
#pragma unroll
  for (int u = 0; u < VECTORS; ++u) x[base + u * 256] = a[u];
}

class Bench {
 public:
  Bench() {
    Check(cudaStreamCreate(&stream_), "stream");
    Check(cudaEventCreate(&start_), "event");
    Check(cudaEventCreate(&end_), "event");
    Check(cudaMalloc(&flush_, kFlushBytes), "memory");
  }
  cudaStream_t stream() const { return stream_; }

  void Launch(const void* kernel, int blocks, int threads, void** arguments, bool cooperative = false,
              bool programmatic = false) {
    cudaLaunchAttribute attributes[2] = {};
    int count = 0;
    if (cooperative) {
      attributes[count].id = cudaLaunchAttributeCooperative;
      attributes[count++].val.cooperative = 1;
    }
    if (programmatic) {
      attributes[count].id = cudaLaunchAttributeProgrammaticStreamSerialization;
      attributes[count++].val.programmaticStreamSerializationAllowed = 1;
    }
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.stream = stream_;
    config.attrs = attributes;
    config.numAttrs = count;
    Check(cudaLaunchKernelExC(&config, kernel, arguments), "launch");
  }

  // Microseconds of one call, 20 of them in a CUDA graph.
  double InGraph(const std::function<void()>& call) {
    constexpr int kCalls = 20;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    Check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capture");
    for (int i = 0; i < kCalls; ++i) call();
    Check(cudaStreamEndCapture(stream_, &graph), "capture");
    Check(cudaGraphInstantiate(&exec, graph, 0), "graph");
    const double microseconds =
        Median([&] { Check(cudaGraphLaunch(exec, stream_), "graph"); }, false) / kCalls;
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    return microseconds;
  }
  // Microseconds between events; `flush`: with caches full of something else.
  double Median(const std::function<void()>& work, bool flush) {
    std::vector<float> times;
    for (int i = 0; i < 35; ++i) {
      if (flush) Check(cudaMemsetAsync(flush_, i, kFlushBytes, stream_), "flush");
      Check(cudaEventRecord(start_, stream_), "event");
      work();
      Check(cudaEventRecord(end_, stream_), "event");
      Check(cudaEventSynchronize(end_), "running");
      float milliseconds = 0;
      Check(cudaEventElapsedTime(&milliseconds, start_, end_), "event");
      if (i >= 5) times.push_back(milliseconds * 1e3f);
    }
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }

 private:
  cudaStream_t stream_;
  cudaEvent_t start_, end_;
  void* flush_;
};

}  // namespace

int main() {
  cudaDeviceProp device;
  Check(cudaGetDeviceProperties(&device, 0), "device");
  const int blocks = device.multiProcessorCount;
  std::printf("%s, %d multiprocessors\n", device.name, blocks);
  Bench bench;
  auto print = [](const char* what, double microseconds) {
    std::printf("%-58s %8.2f us\n", what, microseconds);
  };

  const void* empty = reinterpret_cast<const void*>(Empty);
  const void* dependent = reinterpret_cast<const void*>(Dependent);
  print("empty kernel, graph", bench.InGraph([&] { bench.Launch(empty, blocks, 1024, nullptr); }));
  print("empty cooperative kernel, graph",
        bench.InGraph([&] { bench.Launch(empty, blocks, 1024, nullptr, true); }));
  print("two empty kernels, graph", bench.InGraph([&] {
    bench.Launch(empty, blocks, 1024, nullptr);
    bench.Launch(empty, blocks, 512, nullptr);
  }));
  print("two with programmatic dependent launch, graph", bench.InGraph([&] {
    bench.Launch(dependent, blocks, 1024, nullptr, false, true);
    bench.Launch(dependent, blocks, 512, nullptr, false, true);
  }));
  const double one = bench.InGraph(
      [&] { bench.Launch(reinterpret_cast<const void*>(Barriers<1>), blocks, 1024, nullptr, true); });
  const double ten = bench.InGraph(
      [&] { bench.Launch(reinterpret_cast<const void*>(Barriers<10>), blocks, 1024, nullptr, true); });
  print("barrier of the grid (fu_grid_barrier), one block each", (ten - one) / 9);

  float* columns;
  Check(cudaMalloc(&columns, size_t{16384} * 4), "memory");
  Check(cudaMemset(columns, 0, size_t{16384} * 4), "memory");
  const double launch = bench.InGraph([&] { bench.Launch(empty, blocks, 512, nullptr); });
  for (fu_index count : {fu_index{4}, fu_index{2048}, fu_index{16384}}) {
    void* arguments[] = {&columns, &count};
    char text[80];
    std::snprintf(text, sizeof text, "all blocks add to the same %lld f32, atomic",
                  static_cast<long long>(count));
    print(text, bench.InGraph([&] {
      bench.Launch(reinterpret_cast<const void*>(Atomics), blocks, 512, arguments);
    }) - launch);
  }

  float4 *w, *y, *z, *x;
  size_t count = kVector / 4;
  for (float4** vector : {&w, &y, &z, &x}) {
    Check(cudaMalloc(vector, kVector * 4), "memory");
    Check(cudaMemset(*vector, 0, kVector * 4), "memory");
  }
  size_t cached = kCached;
  float* sink = columns;
  void* read[] = {&w, &cached, &sink};
  const double read_seconds =
      bench.InGraph([&] { bench.Launch(reinterpret_cast<const void*>(Read), 4 * blocks, 512, read); }) * 1e-6;
  std::printf("%-58s %8.2f TB/s\n", "16 MiB read again and again, launch included",
              kCached * 16 / read_seconds / 1e12);

  const double copy = bench.Median(
      [&] { Check(cudaMemcpyAsync(x, w, kVector * 4, cudaMemcpyDeviceToDevice, bench.stream()), "copy"); },
      true);
  std::printf("%-58s %8.2f TB/s\n", "copy of 256 MiB, cold", 2.0 * kVector * 4 / copy * 1e6 / 1e12);
  void* copied[] = {&w, &x};
  auto copy_rate = [&](const char* text, const void* kernel, int vectors) {
    const int grid = static_cast<int>(count / (256 * vectors));
    const double microseconds = bench.Median([&] { bench.Launch(kernel, grid, 256, copied); }, true);
    std::printf("%-58s %8.2f TB/s\n", text, 2.0 * kVector * 4 / microseconds * 1e6 / 1e12);
  };
  copy_rate("x = w, one tile a block, one vector a thread, cold",
            reinterpret_cast<const void*>(Copy<1, false>), 1);
  copy_rate("x = w, one tile a block, 4 vectors a thread, cold",
            reinterpret_cast<const void*>(Copy<4, false>), 4);
  copy_rate("x = w, the same with streaming loads (ld.global.cs), cold",
            reinterpret_cast<const void*>(Copy<4, true>), 4);
  void* add[] = {&w, &y, &z, &x, &count};
  auto rate = [&](int grid) {
    const double microseconds =
        bench.Median([&] { bench.Launch(reinterpret_cast<const void*>(Add), grid, 256, add); }, true);
    return 4.0 * kVector * 4 / microseconds * 1e6 / 1e12;
  };
  std::printf("%-58s %8.2f TB/s\n", "x = w + y + z, one tile a block, cold",
              rate(static_cast<int>((count + 511) / 512)));
  for (int resident : {4, 8}) {
    char text[80];
    std::snprintf(text, sizeof text, "x = w + y + z, persistent, %d blocks a multiprocessor, cold", resident);
    std::printf("%-58s %8.2f TB/s\n", text, rate(resident * blocks));
  }
  return 0;
}
