// Two dimensions of threads for one loop: thread (i, j) runs iteration i, and of each loop inside of it that
// has no loop inside the iteration j alone. Sums keep their order, and neighbours touch neighbouring
// elements.
#pragma once

#include "compiler/partition/dependence.h"
#include "compiler/partition/ranges.h"

namespace fusion {

// Returns true when that gives the same results: within an iteration of the loop, nothing that one j writes
// is touched by another, and all loops of j have as many iterations. Then `last` is the greatest j, of
// iteration i.
bool FindColumns(const llvm::LoopInfo& loops, const LoopAccesses& accesses, ExactNumbers& numbers,
                 IterationSpace& space, const isl::set& assumed, LinearBound& last);

// Leaves of the innermost loops of `body`, an outlined loop for which columns were found, iteration `column`
// alone.
void CutToColumn(llvm::Function& body, llvm::Value* column);

}  // namespace fusion
