// Every program of PolyBench/GPU includes this (polybench_gpu.py): it times the program's launches at all block shapes, in one process, and
// leaves out the run on the host. The program's text stays as it is; its macros lead here.
#pragma once

#include <algorithm>
#include <chrono>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <vector>

struct BenchShape {
  unsigned int x, y;
};
struct BenchGroup {
  BenchShape own;                   // as the suite has it
  std::vector<BenchShape> allowed;  // the shapes to try
};
extern std::vector<BenchGroup> bench_groups;
inline std::vector<BenchShape> bench_block;  // the shape of each group of kernels now

inline void BenchCheck(cudaError_t error, const char* what) {
  // A launch of no blocks, as LU has one, is no fault: shapes that are too large for a kernel are not tried.
  if (error == cudaSuccess || error == cudaErrorInvalidConfiguration) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

// The caches are full of something else and the device is kept waiting while the host queues launches, as in the runs of fusion-runner.
__global__ void BenchDelay(long long nanoseconds) {
  long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - start < nanoseconds);
}

class BenchRuns {
 public:
  void Start() { seconds_.clear(); }
  bool Another() {
    double spent = 0;
    for (double seconds : seconds_) spent += seconds;
    if (spent > 0.2 || seconds_.size() >= 10) return false;
    if (flush_ == nullptr) {
      cudaDeviceProp device;
      BenchCheck(cudaGetDeviceProperties(&device, 0), "the device");
      flush_bytes_ = std::max<size_t>(2 * static_cast<size_t>(device.l2CacheSize), 64 << 20);
      BenchCheck(cudaMalloc(&flush_, flush_bytes_), "memory to flush the cache with");
      BenchCheck(cudaEventCreate(&begin_), "an event");
      BenchCheck(cudaEventCreate(&end_), "an event");
    }
    BenchCheck(cudaMemsetAsync(flush_, 0, flush_bytes_), "flushing the cache");
    BenchDelay<<<1, 1>>>(std::min<long long>(5000000, 20000 + 2 * queued_nanoseconds_));
    BenchCheck(cudaEventRecord(begin_), "an event");
    queue_start_ = std::chrono::steady_clock::now();
    return true;
  }
  void End() {
    queued_nanoseconds_ = std::chrono::nanoseconds(std::chrono::steady_clock::now() - queue_start_).count();
    BenchCheck(cudaGetLastError(), "a launch");
    BenchCheck(cudaEventRecord(end_), "an event");
    BenchCheck(cudaEventSynchronize(end_), "the kernels");
    float milliseconds = 0;
    BenchCheck(cudaEventElapsedTime(&milliseconds, begin_, end_), "the time of the kernels");
    // The first run of all loads the code.
    if (loaded_) seconds_.push_back(milliseconds * 1e-3);
    loaded_ = true;
  }
  std::vector<double> seconds() const { return seconds_; }

 private:
  std::vector<double> seconds_;
  bool loaded_ = false;
  long long queued_nanoseconds_ = 0;
  std::chrono::steady_clock::time_point queue_start_;
  void* flush_ = nullptr;
  size_t flush_bytes_ = 0;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};
inline BenchRuns bench_runs;
inline std::jmp_buf bench_done;
inline std::vector<void*> bench_host, bench_device;  // what the program would have freed

template <typename Entry>
cudaError_t BenchMalloc(Entry** memory, size_t bytes) {
  const cudaError_t error = cudaMalloc(memory, bytes);
  BenchCheck(error, "memory of the device");
  bench_device.push_back(*memory);
  return error;
}

// The suite's own is in polybench.c, which is not compiled.
inline void* polybench_alloc_data(unsigned long long int entries, int entry_bytes) {
  bench_host.push_back(std::calloc(entries, entry_bytes));
  return bench_host.back();
}

int ProgramMain(int argc, char** argv);

// The times of the program's launches at the shapes that are set.
inline std::vector<double> BenchTimes(char** argv) {
  if (setjmp(bench_done) == 0) ProgramMain(1, argv);
  for (void* memory : bench_host) std::free(memory);
  for (void* memory : bench_device) BenchCheck(cudaFree(memory), "freeing memory");
  bench_host.clear();
  bench_device.clear();
  return bench_runs.seconds();
}

// Groups of kernels are apart, so that the best shape of each is found with the others as they are.
inline int BenchMain(char** argv) {
  for (const BenchGroup& group : bench_groups) bench_block.push_back(group.own);
  for (size_t group = 0; group < bench_groups.size(); ++group) {
    double best = 0;
    BenchShape best_shape = bench_block[group];
    for (const BenchShape& shape : bench_groups[group].allowed) {
      bench_block[group] = shape;
      std::vector<double> seconds = BenchTimes(argv);
      std::sort(seconds.begin(), seconds.end());
      std::printf("times");
      for (const BenchShape& each : bench_block) std::printf(" %ux%u", each.x, each.y);
      for (double each : seconds) std::printf(" %.9f", each);
      std::printf("\n");
      std::fflush(stdout);
      if (best == 0 || seconds.front() < best) {
        best = seconds.front();
        best_shape = shape;
      }
    }
    bench_block[group] = best_shape;
  }
  // Without exit handlers of a program that was left in the middle.
  std::_Exit(0);
}

#undef polybench_start_instruments
#undef polybench_stop_instruments
#undef polybench_print_instruments
#define polybench_start_instruments for (bench_runs.Start(); bench_runs.Another(); bench_runs.End()) {
#define polybench_stop_instruments }
#define polybench_print_instruments std::longjmp(bench_done, 1);
#define cudaThreadSynchronize() static_cast<void>(0)  // the stream keeps the order, and launches are queued
#define cudaMalloc BenchMalloc
#define main ProgramMain
