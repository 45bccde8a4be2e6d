#include "worker/measure/host_backend.h"

#include <dlfcn.h>
#include <link.h>
#include <omp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "library/verification/input_rules.h"
#include "worker/measure/host_data.h"
#include "worker/measure/parallel.h"
#include "worker/measure/processor_waits.h"

namespace fusion {
namespace {

// Data lies on huge pages of its own, small data too: which small pages the kernel finds decides how lines of
// the caches are shared, so that a program took up to twice as long in one process as in another. It ends
// where they end, and before and behind them nothing can be read or written.
constexpr size_t kHugePage = 2 << 20, kSmallPage = 4096;
constexpr int64_t kCopyGrain = 1 << 20;
constexpr int64_t kMaximumFlushBytes = 64 << 20;
// Threads that start together wait for microseconds; a scheduler takes a processor away for longer than this.
constexpr double kLeastWait = 0.2e-3;

void* Pointer(DeviceAddress address) { return reinterpret_cast<void*>(address); }
double* Doubles(DeviceAddress address) { return static_cast<double*>(Pointer(address)); }

using HostKernel = void (*)(long long grid, void* const* arguments);

class HostBinary : public LoadedBinary {
 public:
  HostBinary(void* library, int descriptor) : library_(library), descriptor_(descriptor) {}
  ~HostBinary() override {
    dlclose(library_);
    close(descriptor_);
  }
  absl::StatusOr<void*> FindKernel(const std::string& name) override {
    void* kernel = dlsym(library_, name.c_str());
    if (kernel == nullptr)
      return absl::InvalidArgumentError(absl::StrCat("no kernel ", name, " in the shared object"));
    return kernel;
  }
  const long long** FindOrder(const std::string& kernel) override {
    return static_cast<const long long**>(dlsym(library_, absl::StrCat(kernel, "_order").c_str()));
  }

 private:
  void* const library_;
  const int descriptor_;
};

// A path to the descriptor that this process has given to no library before. The loader takes a library whose
// name it knows for the same library, as long as that one is loaded, and a library may stay loaded when it
// has been closed; descriptors are used again. The binary digits of a number that only grows stand in the
// path as parts that lead nowhere: "." for 1, nothing for 0.
std::string NewLibraryName(int descriptor) {
  static std::atomic<uint64_t> loads{0};
  const uint64_t number = ++loads;
  std::string name = "/proc/self/fd/";
  for (uint64_t digit = std::bit_floor(number); digit != 0; digit /= 2) name += number & digit ? "./" : "/";
  return absl::StrCat(name, descriptor);
}

// Returns whether the loader has loaded this file, and not given out one that it had.
bool IsLoadedAs(void* library, const std::string& name) {
  link_map* loaded = nullptr;
  return dlinfo(library, RTLD_DI_LINKMAP, &loaded) == 0 && name == loaded->l_name;
}

// A line "name: value kB" of /proc/meminfo, in bytes.
int64_t MemoryLine(const std::string& name) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    int64_t kilobytes = 0;
    if (words >> key >> kilobytes && key == name + ":") return kilobytes * 1024;
  }
  return 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ExecutionBackend>> HostBackend::Open() {
  return std::unique_ptr<ExecutionBackend>(new HostBackend);
}

HostBackend::~HostBackend() {
  for (const auto& [address, mapping] : allocations_) munmap(mapping.first, mapping.second);
}

v1::MeasurementConditions HostBackend::Conditions() {
  v1::MeasurementConditions conditions;
  conditions.set_throttle_reasons("unknown");
  std::ifstream release("/proc/sys/kernel/osrelease");
  std::string kernel;
  std::getline(release, kernel);
  conditions.set_driver_version(absl::StrCat("Linux ", kernel));
  return conditions;
}

absl::StatusOr<MemoryInfo> HostBackend::Memory() {
  return MemoryInfo{MemoryLine("MemAvailable"), MemoryLine("MemTotal")};
}

absl::StatusOr<DeviceAddress> HostBackend::Allocate(int64_t bytes) {
  const auto whole = [](size_t size, size_t unit) { return (size + unit - 1) / unit * unit; };
  const size_t wanted = std::max<int64_t>(bytes, 1), usable = whole(wanted, kHugePage);
  const size_t mapped = usable + 2 * kHugePage;
  char* const room = static_cast<char*>(
      mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (room == MAP_FAILED)
    return absl::ResourceExhaustedError(absl::StrCat("no memory for ", bytes, " bytes"));
  char* const pages = room + (kHugePage - reinterpret_cast<uintptr_t>(room) % kHugePage);
  if (mprotect(pages, usable, PROT_READ | PROT_WRITE) != 0) {
    munmap(room, mapped);
    return absl::ResourceExhaustedError(absl::StrCat("no memory for ", bytes, " bytes"));
  }
  madvise(pages, usable, MADV_HUGEPAGE);  // advice only
  const DeviceAddress address = reinterpret_cast<DeviceAddress>(pages + usable - whole(wanted, kSmallPage));
  allocations_[address] = {room, mapped};
  return address;
}

void HostBackend::Free(DeviceAddress address) {
  auto found = allocations_.find(address);
  if (found == allocations_.end()) return;
  munmap(found->second.first, found->second.second);
  allocations_.erase(found);
}

absl::Status HostBackend::CopyIn(DeviceAddress to, const void* from, int64_t bytes) {
  std::memcpy(Pointer(to), from, bytes);
  return absl::OkStatus();
}

absl::Status HostBackend::CopyOut(void* to, DeviceAddress from, int64_t bytes) {
  std::memcpy(to, Pointer(from), bytes);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<LoadedBinary>> HostBackend::Load(const std::string& content) {
  const int descriptor = memfd_create("fused.so", MFD_CLOEXEC);
  if (descriptor < 0)
    return absl::ResourceExhaustedError(absl::StrCat("memfd_create: ", std::strerror(errno)));
  for (size_t done = 0; done < content.size();) {
    const ssize_t count = write(descriptor, content.data() + done, content.size() - done);
    if (count <= 0) {
      close(descriptor);
      return absl::ResourceExhaustedError(absl::StrCat("writing a shared object: ", std::strerror(errno)));
    }
    done += count;
  }
  const std::string name = NewLibraryName(descriptor);
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const std::string reason = dlerror();
    close(descriptor);
    return absl::InvalidArgumentError(absl::StrCat("cannot load the shared object: ", reason));
  }
  auto binary = std::make_unique<HostBinary>(library, descriptor);
  if (!IsLoadedAs(library, name))
    return absl::InternalError("the loader gave another library than the one that it was to load");
  return binary;
}

absl::StatusOr<v1::KernelAttributes> HostBackend::Prepare(const PreparedLaunch& launch) {
  v1::KernelAttributes attributes;
  attributes.set_kernel(launch.name);
  attributes.set_blocks_per_multiprocessor(1);
  return attributes;
}

absl::Status HostBackend::FlushCache() {
  if (flush_buffer_ == 0) {
    const int64_t cache = std::max<int64_t>(sysconf(_SC_LEVEL3_CACHE_SIZE), 0);
    flush_bytes_ = std::min(std::max<int64_t>(2 * cache, kMaximumFlushBytes), kMaximumFlushBytes);
    FUSION_ASSIGN_OR_RETURN(DeviceAddress buffer, Allocate(flush_bytes_));
    flush_buffer_ = buffer;
  }
  ++flush_value_;  // so that the pages are written, not only mapped
  char* buffer = static_cast<char*>(Pointer(flush_buffer_));
  ParallelRanges(flush_bytes_, kCopyGrain, [&](int64_t begin, int64_t end) {
    // Not memset: for large sizes it may write around the caches.
    for (int64_t i = begin; i < end; i += 64)
      *reinterpret_cast<volatile unsigned char*>(buffer + i) = flush_value_;
  });
  return absl::OkStatus();
}

absl::StatusOr<double> HostBackend::Run(const std::vector<PreparedLaunch>& launches,
                                        const RunOptions& options) {
  for (const MemoryRange& range : options.poison) {
    char* data = static_cast<char*>(Pointer(range.address));
    ParallelRanges(range.bytes, kCopyGrain,
                   [=](int64_t begin, int64_t end) { std::memset(data + begin, 0xFF, end - begin); });
  }
  for (const MemoryCopy& copy : options.restore) {
    char* const to = static_cast<char*>(Pointer(copy.to));
    const char* const from = static_cast<const char*>(Pointer(copy.from.address));
    ParallelRanges(copy.from.bytes, kCopyGrain,
                   [=](int64_t begin, int64_t end) { std::memcpy(to + begin, from + begin, end - begin); });
  }
  FUSION_RETURN_IF_ERROR(WriteGuards(options.guards));
  if (options.flush_cache) {
    FUSION_RETURN_IF_ERROR(FlushCache());
  }
  if (options.before_launch) options.before_launch();
  std::vector<long long> blocks;
  const auto run = [&](int times) {
    for (int i = 0; i < times; ++i)
      for (const PreparedLaunch& launch : launches) {
        if (launch.grid <= 0) continue;
        const bool ordered = launch.order != nullptr && options.order != BlockOrder::kUsual;
        if (ordered && static_cast<int64_t>(blocks.size()) != launch.grid)
          blocks = OrderedBlocks(options.order, launch.grid);
        if (ordered) *launch.order = blocks.data();
        reinterpret_cast<HostKernel>(launch.kernel)(launch.grid, launch.arguments.data());
        if (ordered) *launch.order = nullptr;
      }
  };
  const int threads = omp_get_max_threads();
  if (options.one_thread) omp_set_num_threads(1);
  run(options.lead);
  const double waited = ProcessorWaitSeconds();
  const auto start = std::chrono::steady_clock::now();
  run(options.repeat);
  const auto end = std::chrono::steady_clock::now();
  omp_set_num_threads(threads);
  if (options.after_run) options.after_run();
  const double seconds = std::chrono::duration<double>(end - start).count(),
               wait = ProcessorWaitSeconds() - waited;
  waited_share_ = wait > kLeastWait ? wait / seconds : 0;
  if (!options.inspections.empty()) {
    FUSION_ASSIGN_OR_RETURN(std::vector<uint64_t> found, Inspect(options.inspections));
    options.inspected->found = std::move(found);
    options.inspected->seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - end).count();
  }
  return seconds / options.repeat;
}

absl::Status HostBackend::Probe() {
  constexpr int64_t kCount = 1 << 16;
  std::vector<float> entries(kCount);
  const InputRule rule = KnownRule();
  FillEntries(entries.data(), v1::F32, kCount, rule, 1);
  for (int64_t i : {int64_t{0}, kCount / 2, kCount - 1})
    if (entries[i] != static_cast<float>(InputEntry(rule, 1, i)))
      return absl::AbortedError("the known kernel computed wrongly");
  return absl::OkStatus();
}

absl::Status HostBackend::Fill(DeviceAddress to, v1::DataType type, int64_t count, const InputRule& rule,
                               uint64_t key) {
  FillEntries(Pointer(to), type, count, rule, key);
  return absl::OkStatus();
}

absl::Status HostBackend::Widen(DeviceAddress to_f64, DeviceAddress from, v1::DataType type, int64_t count) {
  WidenEntries(static_cast<double*>(Pointer(to_f64)), Pointer(from), type, count);
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> HostBackend::Hash(DeviceAddress from, int64_t bytes) {
  return HashBytes(Pointer(from), bytes);
}

absl::StatusOr<ReferenceFigures> HostBackend::Figures(DeviceAddress reference_f64, v1::DataType type,
                                                      int64_t count) {
  return FiguresOf(MeasureScale(Doubles(reference_f64), type, count));
}

absl::StatusOr<Comparison> HostBackend::Compare(DeviceAddress output, v1::DataType type,
                                                DeviceAddress reference_f64, int64_t count, double scale,
                                                DeviceAddress excused) {
  return CompareEntries(Pointer(output), type, Doubles(reference_f64), count, scale, Doubles(excused));
}

absl::Status HostBackend::Perturb(DeviceAddress entries, int64_t count, double most, uint64_t key) {
  PerturbEntries(Doubles(entries), count, most, key);
  return absl::OkStatus();
}

absl::Status HostBackend::Excuse(DeviceAddress excused, DeviceAddress reference, DeviceAddress other,
                                 v1::DataType type, int64_t count, double factor, bool is_first) {
  ExcuseEntries(Doubles(excused), Doubles(reference), Doubles(other), type, count, factor, is_first);
  return absl::OkStatus();
}

}  // namespace fusion
