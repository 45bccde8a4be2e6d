#include "client/partition/resident.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <utility>

#include "client/partition/host_copies.h"
#include "client/partition/readable.h"
#include "client/partition/seconds.h"
#include "client/partition/store_changes.h"

namespace fusion {
namespace {

size_t SizeOf(ByteRange range) { return static_cast<size_t>(range.bytes()); }

bool Contains(ByteRange outer, ByteRange inner) {
  return outer.first <= inner.first && inner.last <= outer.last;
}

// Returns true when it is found that all bytes of `rows` are among those of `known`.
bool Covers(const RowRanges& known, const RowRanges& rows) {
  if (known == rows || (known.whole && Contains(known.range, rows.range))) return true;
  if (known.whole || rows.whole || known.begin.step <= 0 || !Contains(known.range, rows.range)) return false;
  // Each row lies in one of the known ones, and the next row in the next one: all are lines, so that it is
  // enough to look at the first and the last row.
  const int64_t shift =
      known.first + (rows.begin.At(rows.first) - known.begin.At(known.first)) / known.begin.step - rows.first;
  const auto lies_in_known = [&](int64_t row) {
    return known.first <= row + shift && row + shift < known.last &&
           known.begin.At(row + shift) <= rows.begin.At(row) && rows.end.At(row) <= known.end.At(row + shift);
  };
  return lies_in_known(rows.first) && lies_in_known(rows.last - 1);
}

// The rows of an array by addresses.
RowRanges Moved(RowRanges rows, int64_t by) {
  for (int64_t* number : {&rows.begin.at_0, &rows.end.at_0, &rows.range.first, &rows.range.last})
    *number += by;
  return rows;
}

}  // namespace

ByteRange ResidentArrays::Block::Written() const {
  ByteRange all_written = changed;
  for (const RowRanges& rows : written) Extend(all_written, rows.range);
  return all_written;
}

bool ResidentArrays::Meets(ByteRange range, bool is_written) const {
  if (is_written && Overlap(dropped_, range)) return true;
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return Overlap(is_written ? block.all : block.Written(), range);
  });
}

// Where an array is written in part, the bytes between have to be those of the host: they are read by later
// loops, or compared.
bool ResidentArrays::MustBeThere(const LoopRanges& ranges, uint32_t array) {
  const ArrayRange& range = ranges.arrays()[array];
  return !range.read.empty() || !ranges.IsWrittenWhole(array);
}

ResidentArrays::Block* ResidentArrays::Find(ByteRange range) {
  for (Block& block : blocks_)
    if (Contains(block.all, range)) return &block;
  return nullptr;
}

// A block that grows once is likely to grow again, a row at a time. It gets room for as much again, up to a
// limit, where no other block is.
ByteRange ResidentArrays::WithSlack(ByteRange range, ByteRange before) const {
  constexpr int64_t kAlignment = PartitionDevice::kAlignment, kMostSlack = int64_t{256} << 20;
  const int64_t slack = std::min(range.bytes(), kMostSlack);
  ByteRange wide = range;
  if (range.last > before.last) wide.last += slack;
  if (range.first < before.first)
    wide.first = std::max<int64_t>(0, range.first - slack) / kAlignment * kAlignment;
  for (const Block& other : blocks_) {
    if (other.all.first >= range.last) wide.last = std::min(wide.last, other.all.first);
    if (other.all.last <= range.first)
      wide.first = std::max(wide.first, (other.all.last + kAlignment - 1) / kAlignment * kAlignment);
  }
  return {std::min(wide.first, range.first), wide.last};
}

bool ResidentArrays::Cover(ByteRange range) {
  if (Find(range) != nullptr) return true;
  constexpr int64_t kAlignment = PartitionDevice::kAlignment;
  Block block;
  block.all = {range.first / kAlignment * kAlignment, range.last};
  // Blocks that are in the way become parts of it.
  const auto meets = [&block](const Block& other) {
    return other.all.first < block.all.last && block.all.first < other.all.last;
  };
  for (bool grows = true; grows;) {
    grows = false;
    for (const Block& other : blocks_) {
      if (!meets(other) || Contains(block.all, other.all)) continue;
      Extend(block.all, other.all);
      grows = true;
    }
  }
  bool has_before = false;
  ByteRange before;  // what there is of it
  for (const Block& other : blocks_) {
    if (!meets(other)) continue;
    has_before = has_before || other.before != 0;
    Extend(before, other.all);
  }
  blocks_.reserve(blocks_.size() + 1);
  if (!before.empty()) {
    const ByteRange exact = std::exchange(block.all, WithSlack(block.all, before));
    block.memory = device_.Allocate(SizeOf(block.all));
    if (block.memory == 0) block.all = exact;
  }
  if (block.memory == 0) block.memory = device_.Allocate(SizeOf(block.all));
  if (has_before && block.memory != 0) block.before = device_.Allocate(SizeOf(block.all));
  if (block.memory == 0 || (has_before && block.before == 0)) {
    if (block.memory != 0) device_.Free(block.memory);
    return false;
  }
  for (Block& other : blocks_) {
    if (!meets(other)) continue;
    // Where this fails, all that follows does.
    device_.CopyWithin(block.At(other.all.first), other.memory, SizeOf(other.all));
    if (has_before)
      device_.CopyWithin(block.before + static_cast<uint64_t>(other.all.first - block.all.first),
                         other.before != 0 ? other.before : other.memory, SizeOf(other.all));
    for (const ByteRange& range_there : other.valid) Add(block.valid, range_there);
    block.written.insert(block.written.end(), other.written.begin(), other.written.end());
    Extend(block.changed, other.changed);
    device_.Free(other.memory);
    if (other.before != 0) device_.Free(other.before);
  }
  std::erase_if(blocks_, meets);
  blocks_.push_back(std::move(block));
  return true;
}

std::optional<PartitionReason> ResidentArrays::Upload(const LoopRanges& ranges, uint32_t array) {
  const ByteRange wanted = ranges.arrays()[array].Addresses(ranges.arrays()[array].all);
  Block& block = *Find(wanted);
  if (MustBeThere(ranges, array)) {
    const bool has_gaps = !ranges.IsTouchedWhole(array);
    for (const ByteRange& missing : Missing(block.valid, wanted)) {
      switch (device_.Upload(block.At(missing.first), reinterpret_cast<const void*>(missing.first),
                             SizeOf(missing), HostCopies(&pool_), has_gaps)) {
        case Copied::kUnreadable:
          return PartitionReason::kUnreadable;
        case Copied::kFailed:
          return PartitionReason::kFault;
        case Copied::kAll:
          break;
      }
      if (block.before != 0 && !device_.CopyWithin(block.before + (block.At(missing.first) - block.memory),
                                                   block.At(missing.first), SizeOf(missing)))
        return PartitionReason::kFault;
      Add(block.valid, missing);
    }
  }
  if (ranges.arrays()[array].written.empty() || ranges.IsWrittenByRows(array) || block.before != 0)
    return std::nullopt;
  block.before = device_.Allocate(SizeOf(block.all));
  if (block.before == 0) return device_.IsLost() ? PartitionReason::kFault : PartitionReason::kDeviceMemory;
  if (!device_.CopyWithin(block.before, block.memory, SizeOf(block.all))) return PartitionReason::kFault;
  return std::nullopt;
}

void ResidentArrays::NoteWritten(const LoopRanges& ranges, uint32_t array) {
  const ArrayRange& range = ranges.arrays()[array];
  if (range.written.empty()) return;
  Block& block = *Find(range.Addresses(range.all));
  const ByteRange written = range.Addresses(range.written);
  if (!MustBeThere(ranges, array)) Add(block.valid, written);
  if (!ranges.IsWrittenByRows(array)) {
    Extend(block.changed, written);
    return;
  }
  ranges.ForEachWritten(array, [&](const RowRanges& of_array) {
    const RowRanges rows = Moved(of_array, range.address);
    if (std::any_of(block.written.begin(), block.written.end(),
                    [&](const RowRanges& known) { return Covers(known, rows); }))
      return;
    std::erase_if(block.written, [&](const RowRanges& known) { return Covers(rows, known); });
    block.written.push_back(rows);
  });
}

// Loops that come to other memory each time need nothing of the oldest copy.
bool ResidentArrays::DropOldest() {
  const auto is_older = [](const Block& one, const Block& other) {
    return std::pair(one.Written().bytes() != 0, one.last_used) <
           std::pair(other.Written().bytes() != 0, other.last_used);
  };
  const auto oldest = std::min_element(blocks_.begin(), blocks_.end(), is_older);
  if (!oldest->Written().empty()) return false;
  Extend(dropped_, oldest->all);
  device_.Free(oldest->memory);
  if (oldest->before != 0) device_.Free(oldest->before);
  blocks_.erase(oldest);
  return true;
}

std::optional<PartitionReason> ResidentArrays::Prepare(const LoopRanges& ranges) {
  // Later loops may still need what is here: it stays.
  const bool is_full = std::any_of(blocks_.begin(), blocks_.end(),
                                   [](const Block& block) { return block.written.size() >= kMostWritten; });
  if ((is_full || log_.size() >= kMostLogged) && !StoreWritten()) return PartitionReason::kFault;
  while (blocks_.size() >= kMostBlocks)
    if (!DropOldest() && !Store()) return PartitionReason::kFault;
  if (!EndsAreReadable(ranges)) return PartitionReason::kUnreadable;
  for (const ArrayRange& array : ranges.arrays())
    if (!array.all.empty() && !Cover(array.Addresses(array.all)))
      return device_.IsLost() ? PartitionReason::kFault : PartitionReason::kDeviceMemory;
  ++uses_;
  for (uint32_t i = 0; i < ranges.arrays().size(); ++i) {
    const ArrayRange& array = ranges.arrays()[i];
    if (array.all.empty()) continue;
    Find(array.Addresses(array.all))->last_used = uses_;
    if (const auto reason = Upload(ranges, i)) return reason;
  }
  return std::nullopt;
}

bool ResidentArrays::RunPrepared(const LoopCall& call, const LoopRanges& ranges, BlockShape block) {
  const std::vector<ArrayRange>& arrays = ranges.arrays();
  ContextCopy context(call.site, call.context);
  context.MovePointers(call.site, [&](uint32_t array) -> uint64_t {
    if (arrays[array].all.empty()) return 0;
    const Block& there = *Find(arrays[array].Addresses(arrays[array].all));
    return there.memory - static_cast<uint64_t>(there.all.first);
  });
  if (!device_.Run(call.site, call.first, call.last, context.get(), call.facts, block) || !device_.Finish())
    return false;
  for (uint32_t i = 0; i < arrays.size(); ++i)
    if (!arrays[i].all.empty()) NoteWritten(ranges, i);
  log_.push_back(
      {call.site.body, call.first, call.last, std::make_unique<ContextCopy>(call.site, call.context)});
  return true;
}

ResidentArrays::Result ResidentArrays::Run(const LoopCall& call, const LoopRanges& ranges, BlockShape block) {
  Result result;
  const auto start = std::chrono::steady_clock::now();
  try {
    result.reason = Prepare(ranges);
  } catch (const std::bad_alloc&) {
    result.reason = PartitionReason::kNoMemory;
  }
  result.copied_seconds = SecondsSince(start);
  if (!result.reason.has_value()) {
    try {
      if (!RunPrepared(call, ranges, block)) result.reason = PartitionReason::kFault;
    } catch (const std::bad_alloc&) {
      // Nobody knows now what has been written.
      result.reason = PartitionReason::kFault;
    }
  }
  result.ran_seconds = SecondsSince(start) - result.copied_seconds;
  if (result.reason == PartitionReason::kFault) RepeatOnHost();
  return result;
}

int64_t ResidentArrays::BytesToCopy(const LoopRanges& ranges) const {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < ranges.arrays().size(); ++i) {
    const ArrayRange& array = ranges.arrays()[i];
    if (array.all.empty() || !MustBeThere(ranges, i)) continue;
    bytes += array.all.bytes();
    for (const Block& block : blocks_)
      if (Contains(block.all, array.Addresses(array.all))) {
        bytes -= array.all.bytes();
        for (const ByteRange& missing : Missing(block.valid, array.Addresses(array.all)))
          bytes += missing.bytes();
      }
  }
  return bytes;
}

int64_t ResidentArrays::Bytes() const {
  int64_t bytes = 0;
  for (const Block& block : blocks_)
    for (const ByteRange& range : block.valid) bytes += range.bytes();
  return bytes;
}

void ResidentArrays::StoreBlock(const Block& block, const char* now, const char* before) const {
  const HostCopies host(&pool_);
  const int64_t first = block.Written().first;
  const auto at = [now, first](ByteRange range) { return now + (range.first - first); };
  const auto to = [](ByteRange range) { return reinterpret_cast<char*>(range.first); };
  for (const RowRanges& rows : block.written) {
    if (rows.whole) {
      host.Copy(to(rows.range), at(rows.range), SizeOf(rows.range));
      continue;
    }
    host.InParts(rows.last - rows.first, [&](int64_t from, int64_t end) {
      rows.ForEach(rows.first + from, rows.first + end,
                   [&](ByteRange row) { std::memcpy(to(row), at(row), SizeOf(row)); });
    });
  }
  if (block.changed.empty()) return;
  constexpr int64_t kPart = 1 << 17;
  host.InParts((block.changed.bytes() + kPart - 1) / kPart, [&](int64_t from, int64_t end) {
    const ByteRange part{block.changed.first + from * kPart,
                         std::min(block.changed.last, block.changed.first + end * kPart)};
    StoreChanges(to(part), at(part), before + (part.first - block.changed.first), SizeOf(part));
  });
}

// Nothing is stored before all is here.
bool ResidentArrays::StoreWritten() {
  size_t bytes = 0;
  for (const Block& block : blocks_) bytes += SizeOf(block.Written()) + SizeOf(block.changed);
  char* const staging = bytes == 0 ? nullptr : device_.Staging(bytes);
  bool succeeded = bytes == 0 || staging != nullptr;
  char* place = staging;
  const auto download = [&](const Block& block, uint64_t memory, ByteRange range) {
    if (range.empty() || !succeeded) return;
    succeeded =
        device_.Download(place, memory + static_cast<uint64_t>(range.first - block.all.first), SizeOf(range));
    place += range.bytes();
  };
  for (const Block& block : blocks_) {
    download(block, block.memory, block.Written());
    download(block, block.before, block.changed);
  }
  if (!succeeded) {
    RepeatOnHost();
    return false;
  }
  place = staging;
  for (Block& block : blocks_) {
    const ByteRange written = block.Written();
    if (!written.empty()) StoreBlock(block, place, place + written.bytes());
    place += written.bytes() + block.changed.bytes();
    block.written.clear();
    block.changed = {};
    if (block.before != 0) device_.Free(std::exchange(block.before, 0));
  }
  log_.clear();
  dropped_ = {};
  return true;
}

bool ResidentArrays::Store() {
  const bool succeeded = StoreWritten();
  Forget();
  return succeeded;
}

void ResidentArrays::RepeatOnHost() {
  for (const Logged& loop : log_) {
    pool_.Begin(loop.body, loop.context->get(), loop.first, loop.last);
    pool_.Finish();
  }
  Forget();
}

void ResidentArrays::Forget() {
  for (const Block& block : blocks_) {
    device_.Free(block.memory);
    if (block.before != 0) device_.Free(block.before);
  }
  blocks_.clear();
  log_.clear();
  dropped_ = {};
}

}  // namespace fusion
