#include "client/partition/ranges.h"

#include <algorithm>

namespace fusion {
namespace {

using Wide = __int128;  // holds c0 + c1 * i for all numbers of 64 bits

constexpr Wide kFarthest = Wide(1) << 62;

struct WideLine {
  int64_t at_0, step;
  Wide At(int64_t iteration) const { return at_0 + Wide(step) * iteration; }
};

// The ranges of the iterations follow each other without gaps. All that is compared is linear in the
// iteration, so what holds for the first two and the last two holds between.
bool LeavesNoGaps(WideLine begin, WideLine end, int64_t first, int64_t last) {
  if (begin.At(first) >= end.At(first) || begin.At(last - 1) >= end.At(last - 1)) return false;
  if (last - first == 1) return true;
  for (const int64_t i : {first, last - 2})
    if (begin.At(i + 1) > end.At(i) || begin.At(i) > end.At(i + 1)) return false;
  return true;
}

}  // namespace

void Extend(ByteRange& range, ByteRange other) {
  if (range.empty()) {
    range = other;
  } else if (!other.empty()) {
    range = {std::min(range.first, other.first), std::max(range.last, other.last)};
  }
}

std::vector<ByteRange> Missing(const std::vector<ByteRange>& ranges, ByteRange wanted) {
  std::vector<ByteRange> missing;
  for (const ByteRange& range : ranges) {
    if (range.last <= wanted.first) continue;
    if (range.first >= wanted.last) break;
    if (wanted.first < range.first) missing.push_back({wanted.first, range.first});
    wanted.first = range.last;
  }
  if (!wanted.empty()) missing.push_back(wanted);
  return missing;
}

void Add(std::vector<ByteRange>& ranges, ByteRange range) {
  const auto first = std::find_if(ranges.begin(), ranges.end(),
                                  [&](const ByteRange& known) { return known.last >= range.first; });
  auto last = first;
  for (; last != ranges.end() && last->first <= range.last; ++last) Extend(range, *last);
  ranges.insert(ranges.erase(first, last), range);
}

bool Meet(const ArrayRange& array, ByteRange range, const ArrayRange& other_array, ByteRange other_range) {
  if (range.empty() || other_range.empty()) return false;
  return array.address + range.first < other_array.address + other_range.last &&
         other_array.address + other_range.first < array.address + range.last;
}

bool LoopRanges::Find(const fusion_partition_site& site, const int64_t* facts, int64_t first, int64_t last) {
  arrays_.assign(site.arrays, ArrayRange());
  accesses_.clear();
  accesses_.reserve(site.accesses);
  for (uint32_t i = 0; i < site.arrays; ++i) arrays_[i].address = facts[i];
  if (first >= last) return true;
  for (uint32_t i = 0; i < site.accesses; ++i)
    if (site.access[i].flags & FUSION_PARTITION_UNBOUNDED) arrays_[site.access[i].array].is_unbounded = true;
  for (uint32_t i = 0; i < site.accesses; ++i) {
    const uint32_t flags = site.access[i].flags;
    ArrayRange& array = arrays_[site.access[i].array];
    if (array.is_unbounded && (flags & FUSION_PARTITION_WRITTEN)) return false;
    if (flags & FUSION_PARTITION_UNBOUNDED) continue;
    const int64_t* numbers = facts + site.arrays + 4 * static_cast<size_t>(i);
    const WideLine begin{numbers[0], numbers[1]}, end{numbers[2], numbers[3]};
    // An inner loop without iterations; between two iterations that touch nothing are none that do.
    if (begin.At(first) >= end.At(first) && begin.At(last - 1) >= end.At(last - 1)) continue;
    const Wide lowest = std::min(begin.At(first), begin.At(last - 1));
    const Wide highest = std::max(end.At(first), end.At(last - 1));
    // Addresses of programs are positive and far below 2^62.
    if (lowest < -kFarthest || highest > kFarthest) return false;
    if (array.address + lowest < 0 || array.address + highest > kFarthest) return false;
    const ByteRange range{static_cast<int64_t>(lowest), static_cast<int64_t>(highest)};
    const bool whole = (flags & FUSION_PARTITION_PARTIAL) == 0 && LeavesNoGaps(begin, end, first, last);
    accesses_.push_back({site.access[i].array,
                         flags,
                         {{begin.at_0, begin.step}, {end.at_0, end.step}, first, last, range, whole}});
    Extend(array.all, range);
    if (flags & FUSION_PARTITION_READ) Extend(array.read, range);
    if (flags & FUSION_PARTITION_WRITTEN) Extend(array.written, range);
  }
  return true;
}

bool LoopRanges::IsWrittenByRows(uint32_t array) const {
  return std::none_of(accesses_.begin(), accesses_.end(), [&](const Access& access) {
    constexpr uint32_t kUnknown = FUSION_PARTITION_WRITTEN | FUSION_PARTITION_PARTIAL;
    return access.array == array && (access.flags & kUnknown) == kUnknown;
  });
}

bool LoopRanges::MayWrite(const ArrayRange& array, ByteRange range) const {
  for (const ArrayRange& other : arrays_)
    if (Meet(array, range, other, other.written)) return true;
  return false;
}

bool LoopRanges::IsCovered(uint32_t array, ByteRange range, uint32_t flags) const {
  int64_t covered = range.first;
  bool grows = true;
  while (grows && covered < range.last) {
    grows = false;
    for (const Access& access : accesses_) {
      if (access.array != array || !access.rows.whole || (access.flags & flags) == 0) continue;
      if (access.rows.range.first > covered || access.rows.range.last <= covered) continue;
      covered = access.rows.range.last;
      grows = true;
    }
  }
  return covered >= range.last;
}

bool PairsMeet(const fusion_partition_site& site, const std::vector<ArrayRange>& arrays) {
  for (uint32_t i = 0; i < site.pairs; ++i) {
    const ArrayRange& first = arrays[site.pair[i].first];
    const ArrayRange& second = arrays[site.pair[i].second];
    if (Meet(first, first.written, second, second.all) || Meet(second, second.written, first, first.all))
      return true;
  }
  return false;
}

}  // namespace fusion
