// Callers of a function may know what it does to memory. Nobody finds that out any more once the call of a
// loop is in it, but that call changes nothing that they see: a function that only reads is still called once
// before a loop that calls it, and memory that only it was given is still the caller's own.
#pragma once

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/IR/Function.h>

#include <vector>

namespace fusion {

struct FunctionEffects {
  llvm::MemoryEffects memory = llvm::MemoryEffects::unknown();
  std::vector<unsigned> not_captured;  // arguments of which no pointer stays anywhere
};

// Called before any loop of the function is partitioned.
FunctionEffects FindEffects(llvm::Function& function, llvm::AAResults& aliases);
void SetEffects(const FunctionEffects& effects, llvm::Function& function);

}  // namespace fusion
