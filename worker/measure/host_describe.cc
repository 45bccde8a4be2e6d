// HostBackend::Describe: what the processor is and how fast, measured.
#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/sha256.h"
#include "base/status_macros.h"
#include "worker/build/host_builder.h"
#include "worker/measure/host_backend.h"
#include "worker/measure/parallel.h"
#include "worker/measure/statistics.h"

namespace fusion {
namespace {

double Seconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Times of calls, after one that is not counted: of at least `fewest`, and of more, up to kMostCalls, while
// their time is not steady, since other work on the machine makes most of them slow.
constexpr size_t kMostCalls = 41;
struct CallTimes {
  v1::Statistics seconds;
  double uncertainty = 0;
};
template <class Body>
CallTimes TimeCalls(size_t fewest, Body body) {
  body();
  std::vector<double> samples;
  v1::Statistics times;
  do {
    const auto start = std::chrono::steady_clock::now();
    body();
    samples.push_back(Seconds(std::chrono::steady_clock::now() - start));
    if (samples.size() >= fewest) times = TimeStatistics(samples);
  } while (samples.size() < fewest || (samples.size() < kMostCalls && !IsSteady(times, samples.size())));
  return {times, Uncertainty(times, samples.size())};
}

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos) return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return "processor";
}

// Independent multiply-adds on vectors of `Width` floats; enough chains to hide their latency. The target
// attributes below choose the instructions, so one binary measures the peak of any processor.
#define FUSION_MULTIPLY_ADDS(name, target_attribute, bytes)                  \
  target_attribute float name(int64_t repeats) {                             \
    typedef float Vector __attribute__((vector_size(bytes)));                \
    Vector sums[12];                                                         \
    for (int k = 0; k < 12; ++k) sums[k] = Vector{} + static_cast<float>(k); \
    const Vector factor = Vector{} + 0.999f, term = Vector{} + 0.001f;       \
    for (int64_t i = 0; i < repeats; ++i)                                    \
      for (int k = 0; k < 12; ++k) sums[k] = sums[k] * factor + term;        \
    for (int k = 1; k < 12; ++k) sums[0] = sums[0] + sums[k];                \
    return sums[0][0];                                                       \
  }
#if defined(__x86_64__)
FUSION_MULTIPLY_ADDS(MultiplyAdds512, __attribute__((target("avx512f"), noinline)), 64)
FUSION_MULTIPLY_ADDS(MultiplyAdds256, __attribute__((target("avx2,fma"), noinline)), 32)
#endif
FUSION_MULTIPLY_ADDS(MultiplyAdds128, __attribute__((noinline)), 16)
#undef FUSION_MULTIPLY_ADDS

double PeakFlops(int cores) {
  auto kernel = MultiplyAdds128;
  int width = 4;
#if defined(__x86_64__)
  const std::string arch = HostArch();
  if (arch == "x86-64-avx512") kernel = MultiplyAdds512, width = 16;
  if (arch == "x86-64-avx2") kernel = MultiplyAdds256, width = 8;
#endif
  constexpr int64_t kRepeats = 400000;
  std::vector<float> results(cores);
  const double seconds =
      TimeCalls(5, [&] {
        ParallelRanges(cores, 1, [&](int64_t begin, int64_t) { results[begin] = kernel(kRepeats); });
      }).seconds.median();
  volatile float used = results[0];
  (void)used;
  return 2.0 * 12 * width * kRepeats * cores / seconds;
}

// The rate of copies of data that no cache holds, and how far they differ; nothing where there is no memory.
// Each sample copies another part, so that it is short, and the caches hold parts copied long before.
void MeasureCopies(int cores, int64_t memory_bytes, v1::DeviceDescription* device) {
  constexpr int kParts = 8;
  const int64_t part = std::min<int64_t>(256 << 20, memory_bytes / 16) / kParts;
  absl::StatusOr<std::unique_ptr<ExecutionBackend>> backend = HostBackend::Open();
  absl::StatusOr<DeviceAddress> from = (*backend)->Allocate(kParts * part),
                                to = (*backend)->Allocate(kParts * part);
  if (!from.ok() || !to.ok() || part == 0) return;
  char* source = reinterpret_cast<char*>(*from);
  char* target = reinterpret_cast<char*>(*to);
  const int64_t share = (part / cores + 4095) / 4096 * 4096;
  for (char* data : {source, target})
    ParallelRanges(kParts * part, share,
                   [&](int64_t begin, int64_t end) { std::memset(data + begin, 1, end - begin); });
  int64_t copied = 0;
  const CallTimes times = TimeCalls(3 * kParts, [&] {
    const int64_t first = copied++ % kParts * part;
    ParallelRanges(part, share, [&](int64_t begin, int64_t end) {
      std::memcpy(target + first + begin, source + first + begin, end - begin);
    });
  });
  device->set_copy_bytes_per_second(2.0 * part / times.seconds.median());
  device->set_copy_spread(times.uncertainty);
}

}  // namespace

std::string HostUuid() {
  // A confined runner cannot see what the name is made of: its parent tells it.
  if (const char* told = std::getenv(kHostUuidVariable); told != nullptr && *told != '\0') return told;
  std::string identity;
  std::ifstream file("/etc/machine-id");
  std::getline(file, identity);
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return absl::StrCat("host-",
                      Sha256Hex(absl::StrCat(identity, "\n", name, "\n", ProcessorName())).substr(0, 16));
}

absl::StatusOr<v1::DeviceDescription> HostBackend::Describe() {
  v1::DeviceDescription device;
  const int cores = omp_get_max_threads();  // as generated programs have
  FUSION_ASSIGN_OR_RETURN(MemoryInfo memory, Memory());
  device.set_name(ProcessorName());
  device.set_target(v1::HOST);
  device.set_arch(HostArch());
  device.set_driver_version(Conditions().driver_version());
  device.set_multiprocessors(cores);
  // A core runs one "block" at a time, whose lanes are iterations of a loop.
  device.set_max_threads_per_block(1024);
  device.set_max_threads_per_multiprocessor(1024);
  device.set_max_blocks_per_multiprocessor(1);
  device.set_registers_per_multiprocessor(65536);
  // The data that a block keeps on chip lives in the core's own cache.
  const int64_t core_cache = std::max<int64_t>(sysconf(_SC_LEVEL2_CACHE_SIZE), 256 << 10);
  device.set_shared_bytes_per_block(core_cache);
  device.set_shared_bytes_per_multiprocessor(core_cache);
  device.set_l2_bytes(std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), core_cache));
  device.set_memory_bytes(memory.total_bytes);
  MeasureCopies(cores, memory.free_bytes, &device);
  device.set_peak_flops(PeakFlops(cores));
  device.set_launch_seconds(
      TimeCalls(201, [&] { ParallelRanges(cores, 1, [](int64_t, int64_t) {}); }).seconds.median());
  device.set_uuid(HostUuid());
  return device;
}

}  // namespace fusion
