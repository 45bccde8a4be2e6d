// Arrays of which each iteration of a loop may have its own, as `sum` in
//   for (r) { for (p) { sum[p] = 0; for (s) sum[p] += a[r][s] * c[s][p]; } for (p) a[r][p] = sum[p]; }
// An iteration writes what it reads of such an array before it reads it, and all iterations write the same
// elements: the array is left as the last one has it.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>

#include <set>
#include <utility>
#include <vector>

#include "compiler/partition/accesses.h"

namespace fusion {

// The order in which the blocks of a function run.
struct BlockOrder {
  const llvm::LoopInfo& loops;
  const llvm::DominatorTree& dominators;
};

// All accesses of one array with the elements that they touch.
using TouchedElements = std::vector<std::pair<LoopAccess*, isl::map>>;

struct PrivateArray {
  // Writes that each iteration makes, of the same bytes: of every byte of their ranges. Together they write
  // all that is written. None: the array is not private.
  std::set<const LoopAccess*> fills;
  isl::set assumed;  // of parameters: where that holds
};

// known: of parameters, where the loop has two iterations at least and the elements are what they are called.
PrivateArray FindPrivate(const TouchedElements& touched, const isl::set& known, ExactNumbers& numbers,
                         IterationSpace& space, const BlockOrder& order);

}  // namespace fusion
