// The bytes that some iterations of a loop touch.
#pragma once

#include <cstdint>
#include <vector>

#include "client/partition/site.h"

namespace fusion {

// Bytes `first` .. `last - 1` behind an array's address.
struct ByteRange {
  int64_t first = 0, last = 0;

  bool empty() const { return last <= first; }
  int64_t bytes() const { return last - first; }
  bool operator==(const ByteRange&) const = default;
};

inline bool Overlap(ByteRange one, ByteRange other) {
  return one.first < other.last && other.first < one.last;
}

// Makes the range the smallest around both.
void Extend(ByteRange& range, ByteRange other);

struct ArrayRange {
  int64_t address = 0;
  // The smallest ranges around what is read, what is written, and both.
  ByteRange read, written, all;
  // Bytes of which nothing is known are read, too: the array can only be read where it is.
  bool is_unbounded = false;

  char* At(int64_t offset) const { return reinterpret_cast<char*>(address + offset); }
  // Returns a range behind the array's address as one of addresses.
  ByteRange Addresses(ByteRange range) const { return {address + range.first, address + range.last}; }
};

// Lists of ranges that are in order and apart. Add joins a range with those it meets; Missing returns what of
// `wanted` is in none.
void Add(std::vector<ByteRange>& ranges, ByteRange range);
std::vector<ByteRange> Missing(const std::vector<ByteRange>& ranges, ByteRange wanted);

// A bound of a range as a function of the iteration.
struct Line {
  int64_t at_0 = 0, step = 0;

  int64_t At(int64_t iteration) const { return at_0 + step * iteration; }
  bool operator==(const Line&) const = default;
};

// The bytes of an access: iteration i touches begin.At(i) .. end.At(i) - 1.
struct RowRanges {
  Line begin, end;
  int64_t first = 0, last = 0;  // iterations
  ByteRange range;              // the smallest around all of them
  bool whole = false;           // every byte of it is touched

  bool operator==(const RowRanges&) const = default;
  // Calls visit(ByteRange) for the ranges of iterations `from` .. `to - 1`; where all is touched, for all of
  // it, once.
  template <class Visit>
  void ForEach(int64_t from, int64_t to, const Visit& visit) const {
    if (whole) {
      if (from == first) visit(range);
      return;
    }
    for (int64_t i = from; i < to; ++i) {
      const ByteRange row{begin.At(i), end.At(i)};
      if (!row.empty()) visit(row);
    }
  }
};

// Returns true when bytes of one range lie in the other.
bool Meet(const ArrayRange& array, ByteRange range, const ArrayRange& other_array, ByteRange other_range);

// The object may be used again for another loop: it keeps its memory. Throws std::bad_alloc.
class LoopRanges {
 public:
  // Finds what iterations `first` .. `last - 1` touch; none touch nothing. Unbounded accesses are in no
  // range. Returns false where a range cannot be one of memory, or an array with an unbounded access is
  // written.
  bool Find(const fusion_partition_site& site, const int64_t* facts, int64_t first, int64_t last);

  const std::vector<ArrayRange>& arrays() const { return arrays_; }

  // These return true when the iterations touch, or write, every byte of the array's `all`, or `written`.
  bool IsTouchedWhole(uint32_t array) const { return IsCovered(array, arrays_[array].all, ~0u); }
  bool IsWrittenWhole(uint32_t array) const {
    return IsCovered(array, arrays_[array].written, FUSION_PARTITION_WRITTEN);
  }

  // Returns true when each iteration writes every byte of its ranges of the array: all that is written is
  // known.
  bool IsWrittenByRows(uint32_t array) const;
  // Calls visit(RowRanges) for each way in which the array is written.
  template <class Visit>
  void ForEachWritten(uint32_t array, const Visit& visit) const {
    for (const Access& access : accesses_)
      if (access.array == array && (access.flags & FUSION_PARTITION_WRITTEN) != 0) visit(access.rows);
  }
  // Calls visit(ByteRange) for the ranges that an array which is written by rows is written in, as few as
  // there are.
  template <class Visit>
  void ForEachRow(uint32_t array, const Visit& visit) const {
    ForEachWritten(array, [&](const RowRanges& rows) { rows.ForEach(rows.first, rows.last, visit); });
  }

  // Returns true when any iteration may write a byte of the range.
  bool MayWrite(const ArrayRange& array, ByteRange range) const;

 private:
  struct Access {
    uint32_t array, flags;
    RowRanges rows;
  };
  bool IsCovered(uint32_t array, ByteRange range, uint32_t flags) const;

  std::vector<ArrayRange> arrays_;
  std::vector<Access> accesses_;  // without those that touch nothing
};

// Returns true when two arrays of a pair of the site share bytes that one of them writes.
bool PairsMeet(const fusion_partition_site& site, const std::vector<ArrayRange>& arrays);

}  // namespace fusion
