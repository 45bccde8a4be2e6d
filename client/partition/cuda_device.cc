#include "client/partition/cuda_device.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <string_view>

namespace fusion {
namespace {

// So many threads can have 255 registers each, the most there are: every kernel can be launched.
constexpr int64_t kBlockThreads = 256;
constexpr int64_t kWarpThreads = 32;
constexpr int64_t kMostBlocks = INT32_MAX;
constexpr int64_t kMostHeight = 65535;  // of a grid; iterations beyond are further rounds of the same threads
constexpr int64_t kColumnThreads = 64;  // neighbours of one iteration: two warps, whose accesses coalesce
constexpr size_t kLogBytes = 4096;
constexpr size_t kLaneBytes = size_t{16} << 20;
constexpr size_t kShortCopy = size_t{64} << 10;         // the driver is faster with it than lanes are
constexpr int64_t kMostPinnedBytes = int64_t{4} << 30;  // of staging
constexpr int64_t kMostPinnedShare = 16;                // of the machine's memory, one part of so many

std::string TextOf(const CudaDriver& driver, int error) {
  const char* text = nullptr;
  if (driver.error_text(error, &text) == 0 && text != nullptr) return text;
  return "error " + std::to_string(error);
}

const void* KeyOf(const fusion_partition_site& site) {
  const void* const state = __atomic_load_n(&site.state, __ATOMIC_ACQUIRE);
  return state != nullptr ? state : &site;
}

void SayNoKernel(const fusion_partition_site& site, const std::string& reason) {
  std::fprintf(stderr, "fusion: %s: the GPU's driver does not take the loops (%s): they run on the host\n",
               site.file, reason.c_str());
}

// The pool keeps what is freed in it. Returns false where there is no pool.
bool KeepMemoryInPool(const CudaDriver& driver, int device) {
  int has_pools = 0;
  void* pool = nullptr;
  uint64_t all = UINT64_MAX;
  return driver.default_pool != nullptr && driver.device_attribute(&has_pools, kCudaHasPools, device) == 0 &&
         has_pools != 0 && driver.default_pool(&pool, device) == 0 &&
         driver.set_pool(pool, kCudaPoolKeeps, &all) == 0;
}

// Memory that is pinned is lost to other programs.
size_t MostPinnedBytes() {
  const int64_t bytes = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  return static_cast<size_t>(std::clamp<int64_t>(bytes / kMostPinnedShare, 0, kMostPinnedBytes));
}

}  // namespace

std::unique_ptr<CudaDevice> CudaDevice::Make(const CudaDriver& driver) {
  int device = 0;
  void* context = nullptr;
  if (driver.init(0) != 0 || driver.device(&device, 0) != 0 || driver.retain_context(&context, device) != 0 ||
      driver.push_context(context) != 0)
    return nullptr;
  void* stream = nullptr;
  void* popped = nullptr;
  std::array<Lane, 2> lanes;
  bool has_streams = driver.create_stream(&stream, kCudaStreamOfItsOwn) == 0;
  for (Lane& lane : lanes)
    has_streams = has_streams && driver.create_stream(&lane.stream, kCudaStreamOfItsOwn) == 0;
  const bool has_pool = has_streams && KeepMemoryInPool(driver, device);
  int multiprocessors = 0;
  if (driver.device_attribute(&multiprocessors, kCudaMultiprocessors, device) != 0 || multiprocessors < 1)
    multiprocessors = 1;
  if (driver.pop_context(&popped) != 0 || !has_streams) return nullptr;
  return std::unique_ptr<CudaDevice>(
      new CudaDevice(driver, context, stream, lanes, has_pool, multiprocessors));
}

CudaDevice::CudaDevice(const CudaDriver& driver, void* context, void* stream, std::array<Lane, 2> lanes,
                       bool has_pool, int64_t multiprocessors)
    : driver_(driver),
      context_(context),
      stream_(stream),
      has_pool_(has_pool),
      multiprocessors_(multiprocessors),
      process_(getpid()),
      lanes_(lanes) {}

bool CudaDevice::IsLost() const { return is_lost_ || getpid() != process_; }

bool CudaDevice::Succeeded(int error) {
  if (error == 0) return true;
  if (!is_lost_ && error != kCudaDeinitialized) {
    const char* text = nullptr;
    if (driver_.error_text(error, &text) != 0 || text == nullptr) text = "unknown error";
    std::fprintf(stderr, "fusion: the GPU failed (%s): loops run on the host\n", text);
  }
  is_lost_ = true;
  return false;
}

template <class Call>
bool CudaDevice::InContext(const Call& call) {
  if (IsLost() || !Succeeded(driver_.push_context(context_))) return false;
  const int error = call();
  void* popped = nullptr;
  const int pop_error = driver_.pop_context(&popped);
  return Succeeded(error) && Succeeded(pop_error);
}

uint64_t CudaDevice::Allocate(size_t bytes) {
  uint64_t address = 0;
  bool is_there = false;
  const bool succeeded = InContext([&] {
    const int error = has_pool_ ? driver_.allocate_in_pool(&address, std::max<size_t>(bytes, 1), stream_)
                                : driver_.allocate(&address, std::max<size_t>(bytes, 1));
    is_there = error == 0;
    return error == kCudaOutOfMemory ? 0 : error;
  });
  return succeeded && is_there ? address : 0;
}

void CudaDevice::Free(uint64_t address) {
  InContext([&] { return has_pool_ ? driver_.free_in_pool(address, stream_) : driver_.free(address); });
}

char* CudaDevice::Staging(size_t bytes) {
  large_staging_.reset();
  if (staging_ != nullptr && bytes <= staging_bytes_) return staging_;
  if (bytes <= MostPinnedBytes() && InContext([&] {
        void* memory = nullptr;
        if (staging_ != nullptr) driver_.free_host(staging_);
        // Where so much cannot be pinned other memory does.
        staging_ = driver_.allocate_host(&memory, bytes) == 0 ? static_cast<char*>(memory) : nullptr;
        staging_bytes_ = staging_ == nullptr ? 0 : bytes;
        return 0;
      }) &&
      staging_ != nullptr)
    return staging_;
  large_staging_.reset(new (std::nothrow) char[bytes]);
  return large_staging_.get();
}

// Called in the device's context.
bool CudaDevice::HasLanes() {
  for (Lane& lane : lanes_) {
    void* memory = nullptr;
    if (lane.memory == nullptr && driver_.allocate_host(&memory, kLaneBytes) == 0)
      lane.memory = static_cast<char*>(memory);
    if (lane.memory == nullptr) return false;
  }
  return true;
}

Copied CudaDevice::Upload(uint64_t to, const void* from, size_t bytes, const HostCopies& host,
                          bool has_gaps) {
  bool is_readable = true;
  const bool succeeded = InContext([&] {
    if (!has_gaps && (bytes <= kShortCopy || !HasLanes())) {
      const int error = driver_.upload(to, from, bytes, stream_);
      return error != 0 ? error : driver_.synchronize(stream_);
    }
    // Memory that cannot be read safely counts as missing.
    if (!HasLanes()) return is_readable = false, 0;
    const char* const source = static_cast<const char*>(from);
    // The memory may have been allocated in the order of this stream.
    int error = driver_.synchronize(stream_);
    size_t lane_at = 0;
    for (size_t offset = 0; error == 0 && is_readable && offset < bytes; offset += kLaneBytes) {
      const Lane& lane = lanes_[lane_at++ % lanes_.size()];
      const size_t part = std::min(kLaneBytes, bytes - offset);
      error = driver_.synchronize(lane.stream);
      if (error != 0) break;
      if (has_gaps) {
        is_readable = host.CopyReadable(lane.memory, source + offset, part);
      } else {
        host.Copy(lane.memory, source + offset, part);
      }
      if (is_readable) error = driver_.upload(to + offset, lane.memory, part, lane.stream);
    }
    for (const Lane& lane : lanes_)
      if (error == 0) error = driver_.synchronize(lane.stream);
    return error;
  });
  if (!succeeded) return Copied::kFailed;
  return is_readable ? Copied::kAll : Copied::kUnreadable;
}

bool CudaDevice::Download(void* to, uint64_t from, size_t bytes) {
  return InContext([&] {
    const int error = driver_.download(to, from, bytes, stream_);
    return error != 0 ? error : driver_.synchronize(stream_);
  });
}

bool CudaDevice::CopyWithin(uint64_t to, uint64_t from, size_t bytes) {
  return InContext([&] { return driver_.copy_within(to, from, bytes, stream_); });
}

bool CudaDevice::Finish() {
  return InContext([&] { return driver_.synchronize(stream_); });
}

bool CudaDevice::Run(const fusion_partition_site& site, int64_t first, int64_t last, void* context,
                     const int64_t* facts, BlockShape block) {
  if (!CanRun(site)) return false;
  const Kernel kernel = KernelOf(site);
  if (site.has_columns != 0)
    return RunColumns(kernel, first, last, context, facts + site.arrays + 4 * size_t{site.accesses}, block);
  // Few iterations are spread over all multiprocessors.
  const int64_t each = (last - first + multiprocessors_ - 1) / multiprocessors_;
  const int64_t threads = block.x > 0 ? std::min<int64_t>(block.x, kernel.most_threads)
                                      : std::clamp((each + kWarpThreads - 1) / kWarpThreads * kWarpThreads,
                                                   kWarpThreads, kBlockThreads);
  return InContext([&] {
    while (first < last) {
      int64_t part_last = first + std::min(last - first, kMostBlocks * threads);
      const int64_t blocks = (part_last - first + threads - 1) / threads;
      void* parameters[] = {&first, &part_last, context};
      const int error = driver_.launch(kernel.function, static_cast<unsigned>(blocks), 1, 1,
                                       static_cast<unsigned>(threads), 1, 1, 0, stream_, parameters, nullptr);
      if (error != 0) return error;
      first = part_last;
    }
    return 0;
  });
}

bool CudaDevice::RunColumns(const Kernel& kernel, int64_t first, int64_t last, void* context,
                            const int64_t* greatest, BlockShape block) {
  int64_t constant = greatest[0], slope = greatest[1];
  // The compiled program has asked that these numbers are far from the largest.
  const int64_t columns = std::max({constant + slope * first, constant + slope * (last - 1), int64_t{0}}) + 1;
  if (first >= last) return true;
  const int64_t most_threads = block.x > 0 || block.y > 0 ? kernel.most_threads : kBlockThreads;
  const int64_t columns_of_block = block.x > 0 ? std::min<int64_t>(block.x, most_threads) : kColumnThreads;
  const int64_t width = (columns + columns_of_block - 1) / columns_of_block;
  const int64_t most_rows = most_threads / columns_of_block;
  const int64_t rows = block.y > 0 ? std::min<int64_t>(block.y, most_rows) : most_rows;
  const int64_t height = std::min((last - first + rows - 1) / rows, kMostHeight);
  if (width > kMostBlocks) return false;
  return InContext([&] {
    void* parameters[] = {&first, &last, context, &constant, &slope};
    return driver_.launch(kernel.function, static_cast<unsigned>(width), static_cast<unsigned>(height), 1,
                          static_cast<unsigned>(columns_of_block), static_cast<unsigned>(rows), 1, 0, stream_,
                          parameters, nullptr);
  });
}

bool CudaDevice::CanRun(const fusion_partition_site& site) {
  if (site.kernel == nullptr || site.device_code == nullptr || site.context_bytes > kMostContextBytes)
    return false;
  return !IsLost() && KernelOf(site).function != nullptr;
}

CudaDevice::Kernel CudaDevice::KernelOf(const fusion_partition_site& site) {
  try {
    const auto [entry, is_new] = kernels_.try_emplace(KeyOf(site));
    if (is_new) entry->second = FindKernel(site);
    return entry->second;
  } catch (const std::exception&) {
    return {};
  }
}

CudaDevice::Kernel CudaDevice::FindKernel(const fusion_partition_site& site) {
  void* const module = ModuleOf(site);
  if (module == nullptr) return {};
  Kernel kernel;
  int error = 0;
  if (!InContext([&] {
        error = driver_.function(&kernel.function, module, site.kernel);
        if (error == 0)
          error = driver_.function_attribute(&kernel.most_threads, kCudaMostThreads, kernel.function);
        return 0;
      }))
    return {};
  if (error == 0) return kernel;
  SayNoKernel(site, std::string(site.kernel) + ": " + TextOf(driver_, error));
  return {};
}

void* CudaDevice::ModuleOf(const fusion_partition_site& site) {
  const std::string_view code = site.device_code;
  const auto [entry, is_new] =
      modules_.try_emplace({code.size(), std::hash<std::string_view>()(code)}, nullptr);
  if (!is_new) return entry->second;
  std::string log(kLogBytes, '\0');
  int options[] = {kCudaErrorLog, kCudaErrorLogBytes};
  void* values[] = {log.data(), reinterpret_cast<void*>(kLogBytes)};
  int error = 0;
  void* loaded = nullptr;
  if (!InContext([&] {
        error = driver_.load_module(&loaded, site.device_code, 2, options, values);
        return 0;
      }))
    return nullptr;
  if (error == 0) return entry->second = loaded;
  log.resize(std::min(log.find('\0'), log.size()));
  while (!log.empty() && log.back() == '\n') log.pop_back();
  SayNoKernel(site, TextOf(driver_, error) + (log.empty() ? "" : ": " + log));
  return nullptr;
}

}  // namespace fusion
