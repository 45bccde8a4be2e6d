// Finds the loops of a module whose iterations are independent and hands them to the run time.
#pragma once

#include <llvm/IR/PassManager.h>

namespace fusion {

class PartitionPass : public llvm::PassInfoMixin<PartitionPass> {
 public:
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace fusion
