#include "worker/measure/guarded_memory.h"

#include <algorithm>
#include <cassert>

#include "absl/strings/str_cat.h"
#include "worker/measure/status_macros.h"

namespace fusion {
namespace {

constexpr int64_t kAlignment = 256;

// Bytes of the pattern, by position: words 0xFFF7A5C3 are NaN as f32, two of them NaN as f64.
constexpr unsigned char kPattern[4] = {0xC3, 0xA5, 0xF7, 0xFF};

// The pattern from `address` on, so that guards that start at any byte are whole words in memory.
std::vector<unsigned char> Pattern(DeviceAddress address, int64_t bytes) {
  std::vector<unsigned char> pattern(bytes);
  for (int64_t i = 0; i < bytes; ++i) pattern[i] = kPattern[(address + i) % 4];
  return pattern;
}

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
  assert(Capacity(buffers) <= capacity_bytes_);
  buffers_.clear();
  guards_.clear();
  DeviceAddress at = address_;
  for (size_t i = 0; i < buffers.size(); ++i) {
    const auto& [name, bytes] = buffers[i];
    // The zone before the first buffer is its own; the others belong to the buffer that they follow.
    if (i == 0) guards_.push_back({{at, kGuardBytes}, absl::StrCat("before the start of ", name)});
    at += kGuardBytes;
    buffers_.push_back({name, {at, bytes}});
    const int64_t padded = GuardedBytes(bytes) - kGuardBytes;
    guards_.push_back({{at + bytes, padded - bytes + kGuardBytes}, absl::StrCat("after the end of ", name)});
    at += padded;
  }
  return Arm();
}

absl::Status GuardedMemory::Arm() {
  for (const Guard& guard : guards_) {
    const std::vector<unsigned char> pattern = Pattern(guard.range.address, guard.range.bytes);
    FUSION_RETURN_IF_ERROR(backend_->CopyIn(guard.range.address, pattern.data(), guard.range.bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> GuardedMemory::Check() {
  for (const Guard& guard : guards_) {
    const std::vector<unsigned char> expected = Pattern(guard.range.address, guard.range.bytes);
    std::vector<unsigned char> found(guard.range.bytes);
    FUSION_RETURN_IF_ERROR(backend_->CopyOut(found.data(), guard.range.address, guard.range.bytes));
    int64_t changed = 0, first = -1;
    for (int64_t i = 0; i < guard.range.bytes; ++i) {
      if (found[i] == expected[i]) continue;
      if (first < 0) first = i;
      ++changed;
    }
    if (changed > 0)
      return absl::StrCat("wrote outside its buffers: ", changed, " bytes changed ", guard.place,
                          ", from byte ", first);
  }
  return std::string();
}

}  // namespace fusion
