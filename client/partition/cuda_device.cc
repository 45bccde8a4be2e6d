#include "client/partition/cuda_device.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <string_view>

namespace fusion {
namespace {

// So many threads can have 255 registers each, the most there are: every kernel can be launched.
constexpr int64_t kBlockThreads = 256;
constexpr int64_t kMostBlocks = INT32_MAX;
constexpr int64_t kMostHeight = 65535;  // of a grid; iterations beyond are further rounds of the same threads
constexpr int64_t kColumnThreads = 64;  // neighbours of one iteration: two warps, whose accesses coalesce
constexpr size_t kLogBytes = 4096;

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

}  // namespace

std::unique_ptr<CudaDevice> CudaDevice::Make(const CudaDriver& driver) {
  int device = 0;
  void* context = nullptr;
  if (driver.init(0) != 0 || driver.device(&device, 0) != 0 || driver.retain_context(&context, device) != 0 ||
      driver.push_context(context) != 0)
    return nullptr;
  void* stream = nullptr;
  void* popped = nullptr;
  const bool has_stream = driver.create_stream(&stream, kCudaStreamOfItsOwn) == 0;
  const bool has_pool = has_stream && KeepMemoryInPool(driver, device);
  if (driver.pop_context(&popped) != 0 || !has_stream) return nullptr;
  return std::unique_ptr<CudaDevice>(new CudaDevice(driver, context, stream, has_pool));
}

CudaDevice::CudaDevice(const CudaDriver& driver, void* context, void* stream, bool has_pool)
    : driver_(driver), context_(context), stream_(stream), has_pool_(has_pool), process_(getpid()) {}

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

bool CudaDevice::Upload(uint64_t to, const void* from, size_t bytes) {
  return InContext([&] { return driver_.upload(to, from, bytes, stream_); });
}

bool CudaDevice::Download(void* to, uint64_t from, size_t bytes) {
  return InContext([&] {
    const int error = driver_.download(to, from, bytes, stream_);
    return error != 0 ? error : driver_.synchronize(stream_);
  });
}

bool CudaDevice::Run(const fusion_partition_site& site, int64_t first, int64_t last, void* context,
                     const int64_t* facts) {
  if (!CanRun(site)) return false;
  void* const kernel = KernelOf(site);
  if (site.has_columns != 0)
    return RunColumns(kernel, first, last, context, facts + site.arrays + 4 * size_t{site.accesses});
  return InContext([&] {
    while (first < last) {
      int64_t part_last = first + std::min(last - first, kMostBlocks * kBlockThreads);
      const int64_t blocks = (part_last - first + kBlockThreads - 1) / kBlockThreads;
      void* parameters[] = {&first, &part_last, context};
      const int error =
          driver_.launch(kernel, static_cast<unsigned>(blocks), 1, 1, static_cast<unsigned>(kBlockThreads), 1,
                         1, 0, stream_, parameters, nullptr);
      if (error != 0) return error;
      first = part_last;
    }
    return 0;
  });
}

bool CudaDevice::RunColumns(void* kernel, int64_t first, int64_t last, void* context,
                            const int64_t* greatest) {
  int64_t constant = greatest[0], slope = greatest[1];
  // The compiled program has asked that these numbers are far from the largest.
  const int64_t columns = std::max(constant + slope * first, constant + slope * (last - 1)) + 1;
  if (columns <= 0 || first >= last) return true;
  const int64_t width = (columns + kColumnThreads - 1) / kColumnThreads;
  const int64_t rows = kBlockThreads / kColumnThreads;
  const int64_t height = std::min((last - first + rows - 1) / rows, kMostHeight);
  if (width > kMostBlocks) return false;
  return InContext([&] {
    void* parameters[] = {&first, &last, context, &constant, &slope};
    return driver_.launch(kernel, static_cast<unsigned>(width), static_cast<unsigned>(height), 1,
                          static_cast<unsigned>(kColumnThreads), static_cast<unsigned>(rows), 1, 0, stream_,
                          parameters, nullptr);
  });
}

bool CudaDevice::CanRun(const fusion_partition_site& site) {
  if (site.kernel == nullptr || site.device_code == nullptr || site.context_bytes > kMostContextBytes)
    return false;
  return !IsLost() && KernelOf(site) != nullptr;
}

void* CudaDevice::KernelOf(const fusion_partition_site& site) {
  try {
    const auto [entry, is_new] = kernels_.try_emplace(KeyOf(site), nullptr);
    if (is_new) entry->second = FindKernel(site);
    return entry->second;
  } catch (const std::exception&) {
    return nullptr;
  }
}

void* CudaDevice::FindKernel(const fusion_partition_site& site) {
  void* const module = ModuleOf(site);
  if (module == nullptr) return nullptr;
  void* kernel = nullptr;
  int error = 0;
  if (!InContext([&] {
        error = driver_.function(&kernel, module, site.kernel);
        return 0;
      }))
    return nullptr;
  if (error == 0) return kernel;
  SayNoKernel(site, std::string(site.kernel) + ": " + TextOf(driver_, error));
  return nullptr;
}

void* CudaDevice::ModuleOf(const fusion_partition_site& site) {
  const size_t hash = std::hash<std::string_view>()(site.device_code);
  const auto [entry, is_new] = modules_.try_emplace(site.device_code, Module{hash, nullptr});
  Module& module = entry->second;
  if (!is_new && module.hash == hash) return module.module;
  module = {hash, nullptr};
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
  if (error == 0) return module.module = loaded;
  log.resize(std::min(log.find('\0'), log.size()));
  while (!log.empty() && log.back() == '\n') log.pop_back();
  SayNoKernel(site, TextOf(driver_, error) + (log.empty() ? "" : ": " + log));
  return nullptr;
}

}  // namespace fusion
