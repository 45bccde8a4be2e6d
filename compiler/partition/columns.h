// Two dimensions of threads for one loop: thread (i, j) runs iteration i, and iteration j alone of certain
// loops inside of it. Sums keep their order, and neighbours touch neighbouring elements.
#pragma once

#include "compiler/partition/dependence.h"
#include "compiler/partition/ranges.h"

namespace fusion {

// The loops that are cut to one iteration.
enum class ColumnLoops {
  kNone,
  kInnermost,  // those that have no loop inside: a product that adds rows to a row
  kOutermost,  // those directly inside of the loop: a product of a row and a column each
};

// Returns loops for which that gives the same results: within an iteration of the loop, nothing that one j
// writes is touched by another, and all loops of j have as many iterations. Then `last` is the greatest j, of
// iteration i.
ColumnLoops FindColumns(const llvm::LoopInfo& loops, const LoopAccesses& accesses, ExactNumbers& numbers,
                        IterationSpace& space, const isl::set& assumed, LinearBound& last);

// Leaves of these loops of `body`, an outlined loop for which they were found, iteration `column` alone.
// Returns false where it cannot, and the function is of no use then.
bool CutToColumn(llvm::Function& body, ColumnLoops which, llvm::Value* column);

}  // namespace fusion
