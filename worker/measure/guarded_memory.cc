#include "worker/measure/guarded_memory.h"

#include <algorithm>
#include <cassert>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace fusion {
namespace {

constexpr int64_t kAlignment = 256;

}  // namespace

int64_t GuardedBytes(int64_t bytes) {
  return kGuardBytes + (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

int64_t GuardedMemory::Capacity(const std::vector<std::pair<std::string, int64_t>>& buffers) {
  int64_t capacity = kGuardBytes;
  for (const auto& [name, bytes] : buffers) capacity += GuardedBytes(bytes);
  return capacity;
}

absl::StatusOr<std::unique_ptr<GuardedMemory>> GuardedMemory::Create(ExecutionBackend* backend,
                                                                     int64_t capacity_bytes) {
  FUSION_ASSIGN_OR_RETURN(const DeviceAddress address, backend->Allocate(capacity_bytes));
  return std::unique_ptr<GuardedMemory>(new GuardedMemory(backend, address, capacity_bytes));
}

GuardedMemory::~GuardedMemory() { backend_->Free(address_); }

absl::Status GuardedMemory::Cut(const std::vector<std::pair<std::string, int64_t>>& buffers) {
  Lay(buffers);
  return Arm();
}

void GuardedMemory::Lay(const std::vector<std::pair<std::string, int64_t>>& buffers) {
  assert(Capacity(buffers) <= capacity_bytes_);
  buffers_.clear();
  guards_.clear();
  places_.clear();
  DeviceAddress at = address_;
  const auto add_guard = [&](DeviceAddress address, int64_t bytes, std::string place) {
    guards_.push_back({address, bytes});
    places_.push_back(std::move(place));
  };
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto& [name, bytes] = buffers[i];
    // The zone before the first buffer is its own; the others belong to the buffer that they follow.
    if (i == 0) add_guard(at, kGuardBytes, absl::StrCat("before the start of ", name));
    at += kGuardBytes;
    buffers_.push_back({name, {at, bytes}});
    const int64_t padded = GuardedBytes(bytes) - kGuardBytes;
    add_guard(at + bytes, padded - bytes + kGuardBytes, absl::StrCat("after the end of ", name));
    at += padded;
  }
}

absl::Status GuardedMemory::Arm() { return backend_->WriteGuards(guards_); }

absl::StatusOr<std::string> GuardedMemory::Check() {
  std::vector<Inspection> inspections;
  for (const MemoryRange& guard : guards_)
    inspections.push_back({.kind = Inspection::Kind::kGuard, .range = guard});
  FUSION_ASSIGN_OR_RETURN(const std::vector<uint64_t> changed, backend_->Inspect(inspections));
  for (size_t i = 0; i < guards_.size(); ++i) {
    if (changed[i] == 0) continue;
    const MemoryRange& guard = guards_[i];
    std::vector<unsigned char> found(guard.bytes);
    FUSION_RETURN_IF_ERROR(backend_->CopyOut(found.data(), guard.address, guard.bytes));
    int64_t first = 0;
    while (first < guard.bytes && found[first] == GuardByte(guard.address + first)) ++first;
    return absl::StrCat("wrote outside its buffers: ", changed[i], " bytes changed ", places_[i],
                        ", from byte ", first);
  }
  return std::string();
}

}  // namespace fusion
