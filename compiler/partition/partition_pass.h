// Finds the loops of a module whose iterations are independent and hands them to the run time.
#pragma once

#include <llvm/IR/PassManager.h>

#include <memory>
#include <utility>

namespace fusion {

class DeviceCompile;

// It begins to make the code for GPUs, which the other pass waits for: both have one object for that, and run
// on one module after another.
class PartitionPass : public llvm::PassInfoMixin<PartitionPass> {
 public:
  explicit PartitionPass(std::shared_ptr<DeviceCompile> device_code) : device_code_(std::move(device_code)) {}
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
  static bool isRequired() { return true; }

 private:
  std::shared_ptr<DeviceCompile> device_code_;
};

// Puts the code for GPUs into the module, at the end of the pipeline.
class DeviceTextPass : public llvm::PassInfoMixin<DeviceTextPass> {
 public:
  explicit DeviceTextPass(std::shared_ptr<DeviceCompile> device_code)
      : device_code_(std::move(device_code)) {}
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
  static bool isRequired() { return true; }

 private:
  std::shared_ptr<DeviceCompile> device_code_;
};

}  // namespace fusion
