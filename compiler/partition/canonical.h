// The form of a module in which loops are recognised: scalars in registers, small functions inlined, loops
// with their test at the end, and what does not change in them before them.
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>

namespace fusion {

// Brings all functions of the module into that form. Passes that take loops apart (partial redundancies of
// loads, unswitching, memcpy idioms) are not among what is done: those come after.
void Canonicalise(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);

}  // namespace fusion
