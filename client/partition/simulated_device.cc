#include "client/partition/simulated_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <new>

namespace fusion {
namespace {

constexpr int kPoison = 0xA5;

}  // namespace

SimulatedDevice::~SimulatedDevice() {
  for (const auto& [address, block] : blocks_) munmap(block.mapping, block.mapped_bytes);
}

uint64_t SimulatedDevice::Allocate(size_t bytes) {
  const size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (bytes > static_cast<uint64_t>(settings_.memory_bytes - used_bytes_)) return 0;
  if (bytes > SIZE_MAX - 4 * page_bytes) return 0;
  const size_t inner_bytes = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  const size_t mapped_bytes = inner_bytes + 2 * page_bytes;
  void* mapping = mmap(nullptr, mapped_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return 0;
  char* const inner = static_cast<char*>(mapping) + page_bytes;
  const uint64_t address = reinterpret_cast<uint64_t>(inner);
  try {
    if (mprotect(inner, inner_bytes, PROT_READ | PROT_WRITE) == 0) {
      std::memset(inner, kPoison, inner_bytes);
      blocks_.emplace(address, Block{mapping, mapped_bytes, bytes});
      used_bytes_ += static_cast<int64_t>(bytes);
      return address;
    }
  } catch (const std::bad_alloc&) {
  }
  munmap(mapping, mapped_bytes);
  return 0;
}

void SimulatedDevice::Free(uint64_t address) {
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return;
  munmap(found->second.mapping, found->second.mapped_bytes);
  used_bytes_ -= static_cast<int64_t>(found->second.bytes);
  blocks_.erase(found);
}

char* SimulatedDevice::Staging(size_t bytes) {
  staging_.reset(new (std::nothrow) char[bytes]);
  return staging_.get();
}

Copied SimulatedDevice::Upload(uint64_t to, const void* from, size_t bytes, const HostCopies& host,
                               bool has_gaps) {
  char* const memory = reinterpret_cast<char*>(to);
  const char* const source = static_cast<const char*>(from);
  if (has_gaps) return host.CopyReadable(memory, source, bytes) ? Copied::kAll : Copied::kUnreadable;
  host.Copy(memory, source, bytes);
  return Copied::kAll;
}

bool SimulatedDevice::Download(void* to, uint64_t from, size_t bytes) {
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return true;
}

bool SimulatedDevice::CopyWithin(uint64_t to, uint64_t from, size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  return true;
}

bool SimulatedDevice::Run(const fusion_partition_site& site, int64_t first, int64_t last, void* context,
                          const int64_t*, BlockShape) {
  if (++runs_ == settings_.fault) return false;
  site.body(first, last, context);
  return true;
}

}  // namespace fusion
