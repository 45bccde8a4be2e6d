// The form of a module in which loops are recognised: scalars in registers, small functions inlined, loops
// with their test at the end, and what does not change in them before them.
#pragma once

#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>

namespace fusion {

// Analyses of a module of which nobody else keeps any.
struct Analyses {
  Analyses();

  llvm::LoopAnalysisManager of_loops;
  llvm::FunctionAnalysisManager of_functions;
  llvm::CGSCCAnalysisManager of_calls;
  llvm::ModuleAnalysisManager of_module;
};

// Brings all functions of the module into that form. Passes that take loops apart (partial redundancies of
// loads, unswitching, memcpy idioms) are not among what is done: those come after.
void Canonicalise(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);

}  // namespace fusion
