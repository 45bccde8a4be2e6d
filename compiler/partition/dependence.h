// The proof that no two iterations of a loop touch one element of an array, one of them writing.
#pragma once

#include <llvm/ADT/SmallPtrSet.h>

#include <string>

#include "compiler/partition/accesses.h"

namespace fusion {

struct Independence {
  std::string why_not;  // why the iterations may depend on each other; empty: they do not
  isl::set assumed;     // of parameters: where that holds
  // These innermost loops inside have iterations that may depend on each other.
  llvm::SmallPtrSet<const llvm::Loop*, 4> dependent;
};

// All accesses of an array lie within it, whichever iterations run. Arrays are taken to share no memory. Sets
// the parts of accesses.
Independence FindDependence(LoopAccesses& accesses, ExactNumbers& numbers, IterationSpace& space);

}  // namespace fusion
