// The bytes that iterations of a loop touch of an array are a function of the first and the last of them.
#pragma once

#include <vector>

#include "compiler/partition/accesses.h"

namespace fusion {

// constant + slope * (number of the iteration), exact numbers that are known before the loop.
struct LinearBound {
  const llvm::SCEV* constant = nullptr;
  const llvm::SCEV* slope = nullptr;
  bool operator==(const LinearBound& other) const {
    return constant == other.constant && slope == other.slope;
  }
};

class Ranges {
 public:
  explicit Ranges(ExactNumbers& numbers) : numbers_(numbers) {}

  // The least (or most) that `number` is in an iteration, whatever the loops inside do. No constant: unknown.
  LinearBound Least(const llvm::SCEV* number) { return Bound(number, false); }
  LinearBound Most(const llvm::SCEV* number) { return Bound(number, true); }

  // Numbers that the bounds take to be at least 0.
  const llvm::SetVector<const llvm::SCEV*>& not_negative() const { return not_negative_; }

 private:
  LinearBound Bound(const llvm::SCEV* number, bool most);
  LinearBound Scaled(const LinearBound& bound, const llvm::SCEV* factor) const;
  bool IsPositive(const llvm::SCEV* factor);

  ExactNumbers& numbers_;
  llvm::SetVector<const llvm::SCEV*> not_negative_;
};

// Returns true when every iteration of the loop touches every byte of its range. Where `repeats` is given a
// loop inside may touch the same bytes again and again: its last count goes there, and may not be negative.
bool TouchesAll(const LoopAccess& access, const llvm::DominatorTree& dominators, ExactNumbers& numbers,
                llvm::SmallVectorImpl<const llvm::SCEV*>* repeats = nullptr);

}  // namespace fusion
