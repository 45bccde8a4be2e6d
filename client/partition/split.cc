#include "client/partition/split.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "client/partition/array_copies.h"
#include "client/partition/host_run.h"
#include "client/partition/ranges.h"
#include "client/partition/readable.h"
#include "client/partition/store_changes.h"

namespace fusion {
namespace {

using Bytes = std::unique_ptr<char[]>;

Bytes NewBytes(const ByteRange& range) { return Bytes(new char[static_cast<size_t>(range.bytes())]); }

// The device's part of a run. Its memory is all taken before anything runs.
class DevicePart {
 public:
  // The device has iterations call.first .. last - 1.
  DevicePart(const LoopCall& call, int64_t last, PartitionDevice& device)
      : call_(call), last_(last), device_(device), copies_(device) {}

  // Returns why it cannot be. Called before the host's part begins, so that bytes which that writes are read
  // before. Throws std::bad_alloc.
  std::optional<PartitionReason> Prepare();

  // These return false when the device has failed, Run and Download without a change of what other iterations
  // read.
  bool Run(int chunks, BlockShape block);
  bool Download();

  // Called once the host's part has ended, too.
  void Store();

 private:
  struct Part {
    bool is_uploaded = false;
    bool is_merged = false;  // which bytes the device writes is not known: those that it changed are stored
    Bytes uploaded;  // a copy, where the host's part may change the bytes, some may not be there, or they are
                     // merged
    Bytes downloaded;  // where what the device writes is read, too: the iterations may be repeated until all
                       // is here
  };

  const LoopCall& call_;
  const int64_t last_;
  PartitionDevice& device_;
  ArrayCopies copies_;
  LoopRanges ranges_;
  std::vector<Part> parts_;  // of the arrays
  void* context_ = nullptr;
};

std::optional<PartitionReason> DevicePart::Prepare() {
  LoopRanges host_ranges;
  if (!ranges_.Find(call_.site, call_.facts, call_.first, last_) ||
      !host_ranges.Find(call_.site, call_.facts, last_, call_.last))
    return PartitionReason::kRanges;
  if (!EndsAreReadable(ranges_)) return PartitionReason::kUnreadable;
  const std::vector<ArrayRange>& arrays = ranges_.arrays();
  if (!copies_.Allocate(arrays))
    return device_.IsLost() ? PartitionReason::kFault : PartitionReason::kDeviceMemory;
  context_ = copies_.Translate(call_.site, call_.context, call_.facts);
  parts_.resize(arrays.size());
  for (uint32_t i = 0; i < arrays.size(); ++i) {
    const ArrayRange& array = arrays[i];
    Part& part = parts_[i];
    const bool is_written = !array.written.empty();
    part.is_merged = is_written && !ranges_.IsWrittenByRows(i);
    part.is_uploaded = !array.read.empty() || part.is_merged;
    const bool has_gaps = !ranges_.IsTouchedWhole(i);
    if (part.is_merged || (part.is_uploaded && (has_gaps || host_ranges.MayWrite(array, array.all))))
      part.uploaded = NewBytes(array.all);
    const bool is_stored_at_once = ranges_.IsWrittenWhole(i) && !host_ranges.MayWrite(array, array.written);
    if (is_written && (part.is_merged || !array.read.empty() || !is_stored_at_once))
      part.downloaded = NewBytes(array.written);
    if (part.uploaded == nullptr) continue;
    const char* const from = array.At(array.all.first);
    const size_t bytes = static_cast<size_t>(array.all.bytes());
    if (!has_gaps) {
      std::memcpy(part.uploaded.get(), from, bytes);
    } else if (!CopyReadable(part.uploaded.get(), from, bytes)) {
      return PartitionReason::kUnreadable;
    }
  }
  return std::nullopt;
}

bool DevicePart::Run(int chunks, BlockShape block) {
  for (uint32_t i = 0; i < parts_.size(); ++i) {
    if (!parts_[i].is_uploaded) continue;
    const ArrayRange& array = ranges_.arrays()[i];
    const void* from = parts_[i].uploaded != nullptr ? parts_[i].uploaded.get() : array.At(array.all.first);
    // The pool's threads run the host's part.
    if (device_.Upload(copies_.At(i, array.all.first), from, static_cast<size_t>(array.all.bytes()),
                       HostCopies(nullptr), false) != Copied::kAll)
      return false;
  }
  const int64_t iterations = last_ - call_.first;
  const int64_t count = std::min<int64_t>(chunks, iterations);
  const int64_t each = iterations / count, longer = iterations % count;
  for (int64_t chunk = 0, first = call_.first; chunk < count; ++chunk) {
    const int64_t last = first + each + (chunk < longer ? 1 : 0);
    if (!device_.Run(call_.site, first, last, context_, call_.facts, block)) return false;
    first = last;
  }
  return true;
}

bool DevicePart::Download() {
  for (uint32_t i = 0; i < parts_.size(); ++i) {
    const ArrayRange& array = ranges_.arrays()[i];
    if (array.written.empty()) continue;
    void* to = parts_[i].downloaded != nullptr ? parts_[i].downloaded.get() : array.At(array.written.first);
    if (!device_.Download(to, copies_.At(i, array.written.first), static_cast<size_t>(array.written.bytes())))
      return false;
  }
  return true;
}

void DevicePart::Store() {
  for (uint32_t i = 0; i < parts_.size(); ++i) {
    const ArrayRange& array = ranges_.arrays()[i];
    const char* const downloaded = parts_[i].downloaded.get();
    if (downloaded == nullptr) continue;
    char* const to = array.At(array.written.first);
    const size_t bytes = static_cast<size_t>(array.written.bytes());
    if (!parts_[i].is_merged) {
      ranges_.ForEachRow(i, [&](ByteRange row) {
        const int64_t at = row.first - array.written.first;
        std::memcpy(to + at, downloaded + at, static_cast<size_t>(row.bytes()));
      });
      continue;
    }
    const char* const before = parts_[i].uploaded.get() + (array.written.first - array.all.first);
    StoreChanges(to, downloaded, before, bytes);
  }
}

}  // namespace

SplitResult RunSplit(const LoopCall& call, int64_t device_iterations, const LoopPlan& plan,
                     PartitionDevice* device, HostPool& pool) {
  SplitResult result;
  std::optional<DevicePart> part;
  if (device != nullptr && device_iterations > 0 && !HasPrivateArrays(call.site)) {
    try {
      part.emplace(call, call.first + device_iterations, *device);
      result.reason = part->Prepare();
    } catch (const std::bad_alloc&) {
      result.reason = PartitionReason::kDeviceMemory;
    }
    if (result.reason.has_value()) part.reset();
  }
  if (!part.has_value()) device_iterations = 0;

  const int64_t host_first = call.first + device_iterations;
  HostRun host(LoopCall{call.site, host_first, call.last, call.context, call.facts}, pool, plan.threads);
  bool succeeded = !part.has_value() || part->Run(plan.chunks, BlockShape{plan.block_x, plan.block_y});
  host.Finish();
  if (!part.has_value()) return result;
  succeeded = succeeded && part->Download();
  if (succeeded) {
    part->Store();
    result.device_iterations = device_iterations;
  } else {
    result.reason = PartitionReason::kFault;
    pool.Begin(call.site.body, call.context, call.first, host_first);
    pool.Finish();
  }
  return result;
}

}  // namespace fusion
