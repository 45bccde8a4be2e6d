// One loop of a function on its way to a call of the run time.
#pragma once

#include <llvm/IR/PassManager.h>

#include <string>

#include "compiler/partition/device_code.h"
#include "compiler/partition/reordered_code.h"

namespace fusion {

// PartitionLoop returns this for a loop that it would take with sums.
inline constexpr char kSums[] = "it sums up over its iterations";

// A nest that has a copy in another order.
struct ReorderedNest {
  size_t at = 0;                     // which remark is about it
  std::string description, why_not;  // the latter: why the loop itself is not partitioned
  ReorderedCode::Blocks blocks;
  llvm::GlobalVariable* site = nullptr;
};

// Makes a function of the loop, and the call. Returns "", or why the loop stays as it is: then nothing was
// changed.
std::string PartitionLoop(llvm::Loop& loop, llvm::Function& function, llvm::FunctionAnalysisManager& analyses,
                          const std::string& name, bool takes_sums, std::string& description,
                          DeviceKernel& kernel);

// Gives a nest whose outermost loop cannot be partitioned a copy in another order, where most of it can.
// Returns "", or why there is none: then nothing was changed.
std::string ReorderNest(llvm::Loop& loop, llvm::Function& function, llvm::FunctionAnalysisManager& analyses,
                        const std::string& name, ReorderedNest& nest);

}  // namespace fusion
