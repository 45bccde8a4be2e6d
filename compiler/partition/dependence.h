// The proof that no two iterations of a loop touch one element of an array, one of them writing.
#pragma once

#include <llvm/ADT/SmallPtrSet.h>

#include <set>
#include <string>

#include "compiler/partition/accesses.h"
#include "compiler/partition/private_arrays.h"

namespace fusion {

struct Independence {
  std::string why_not;                // why the iterations may depend on each other; empty: they do not
  isl::set assumed;                   // of parameters: where that holds
  std::set<unsigned> private_arrays;  // where each thread has arrays of its own for these
  std::set<const LoopAccess*> fills;  // of PrivateArray
  // These innermost loops inside have iterations that may depend on each other.
  llvm::SmallPtrSet<const llvm::Loop*, 4> dependent;
};

// All accesses of an array lie within it, whichever iterations run. Arrays are taken to share no memory.
// Without an order no array is private. Sets the parts of accesses.
Independence FindDependence(LoopAccesses& accesses, ExactNumbers& numbers, IterationSpace& space,
                            const BlockOrder* order = nullptr);

}  // namespace fusion
