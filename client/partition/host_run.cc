#include "client/partition/host_run.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

namespace fusion {

bool HasPrivateArrays(const fusion_partition_site& site) {
  return std::any_of(site.access, site.access + site.accesses, [](const fusion_partition_access& access) {
    return (access.flags & FUSION_PARTITION_PRIVATE) != 0;
  });
}

HostRun::HostRun(const LoopCall& call, HostPool& pool, int most_threads) noexcept : call_(call), pool_(pool) {
  if (!HasPrivateArrays(call.site)) {
    pool.Begin(call.site.body, call.context, call.first, call.last, most_threads);
    return;
  }
  int threads = 1;
  try {
    threads = Prepare(std::min(most_threads, pool.threads()));
  } catch (const std::exception&) {
    // Without memory for two one thread does it.
    if (threads_.size() > 1) threads = static_cast<int>(threads_.size());
  }
  if (threads > 1) {
    pool.Begin(&HostRun::RunSlice, this, call.first, call.last, threads);
  } else {
    pool.Begin(call.site.body, call.context, call.first, call.last, 1);
  }
}

bool HostRun::FindArrays() {
  LoopRanges ranges;
  if (call_.site.sums != 0 || !ranges.Find(call_.site, call_.facts, call_.first, call_.last)) return false;
  for (uint32_t number = 0; number < call_.site.arrays; ++number) {
    const bool is_private =
        std::any_of(call_.site.access, call_.site.access + call_.site.accesses,
                    [&](const fusion_partition_access& access) {
                      return access.array == number && (access.flags & FUSION_PARTITION_PRIVATE) != 0;
                    });
    const ArrayRange& array = ranges.arrays()[number];
    if (!is_private || array.written.empty()) continue;
    Array found{number, array.At(array.written.first), array.written.bytes(), {}};
    ranges.ForEachWritten(number, [&](const RowRanges& rows) {
      if (rows.whole)
        Add(found.filled, {rows.range.first - array.written.first, rows.range.last - array.written.first});
    });
    bool is_filled = true;
    ranges.ForEachWritten(number, [&](const RowRanges& rows) {
      const ByteRange range{rows.range.first - array.written.first, rows.range.last - array.written.first};
      is_filled = is_filled && Missing(found.filled, range).empty();
    });
    if (!is_filled) return false;
    arrays_.push_back(std::move(found));
  }
  return true;
}

// Each array begins as far behind a multiple of the alignment as the program's: the loop may have been
// compiled with that.
void HostRun::AddThread() {
  OfThread thread{ContextCopy(call_.site, call_.context), {}, {}};
  for (const Array& array : arrays_) {
    const size_t alignment = static_cast<size_t>(kAlignment);
    const size_t behind = reinterpret_cast<uintptr_t>(array.address) % alignment;
    const size_t bytes = (static_cast<size_t>(array.bytes) + behind + alignment - 1) / alignment * alignment;
    thread.memory.emplace_back(static_cast<char*>(::operator new(bytes, kAlignment)));
    thread.arrays.push_back(thread.memory.back().get() + behind);
  }
  thread.context.MovePointers(call_.site, [&](uint32_t number) -> uint64_t {
    for (size_t at = 0; at < arrays_.size(); ++at)
      if (arrays_[at].number == number)
        return reinterpret_cast<uint64_t>(thread.arrays[at]) -
               reinterpret_cast<uint64_t>(arrays_[at].address);
    return 0;
  });
  threads_.push_back(std::move(thread));
}

int HostRun::Prepare(int most_threads) {
  // One iteration alone may read what it has not written.
  if (call_.iterations() < 2 || most_threads < 2 || !FindArrays()) return 1;
  int64_t bytes = 1;
  for (const Array& array : arrays_) bytes += std::min(array.bytes, kMostBytes);
  const int64_t threads =
      std::min({static_cast<int64_t>(most_threads), call_.iterations(), kMostBytes / bytes});
  if (threads < 2) return 1;
  threads_.reserve(static_cast<size_t>(threads));
  idle_.reserve(static_cast<size_t>(threads));
  for (int64_t thread = 0; thread < threads; ++thread) {
    AddThread();
    idle_.push_back(&threads_.back());
  }
  return static_cast<int>(threads);
}

void HostRun::RunSlice(int64_t first, int64_t last, void* run) {
  HostRun& all = *static_cast<HostRun*>(run);
  OfThread* thread;
  {
    std::lock_guard<std::mutex> lock(all.mutex_);
    thread = all.idle_.back();
    all.idle_.pop_back();
  }
  all.call_.site.body(first, last, thread->context.get());
  if (last == all.call_.last) {
    for (size_t at = 0; at < all.arrays_.size(); ++at)
      for (const ByteRange& range : all.arrays_[at].filled)
        std::memcpy(all.arrays_[at].address + range.first, thread->arrays[at] + range.first,
                    static_cast<size_t>(range.bytes()));
  }
  std::lock_guard<std::mutex> lock(all.mutex_);
  all.idle_.push_back(thread);
}

}  // namespace fusion
