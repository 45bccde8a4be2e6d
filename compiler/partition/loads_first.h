// Code of loops for a machine that runs instructions in order: it waits for each load where it is used first.
#pragma once

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>

namespace fusion {

// Writes to the innermost loops inside of `loop`, but for `dependent` ones, that their iterations may run in
// any order.
void MarkIndependentLoops(const llvm::Loop& loop, const llvm::SmallPtrSet<const llvm::Loop*, 4>& dependent);

// Unrolls marked loops that store, so that the loads of several iterations stand before their stores. Without
// that each iteration of a thread waits for memory.
void PutLoadsFirst(llvm::Function& function);

}  // namespace fusion
