// Arrays of partitioned loops may stay on a device until the program touches memory otherwise: before it
// does, it asks the run time to bring back what the loops have written (client/partition/site.h).
#pragma once

#include <llvm/IR/PassManager.h>

namespace fusion {

// The metadata of instructions that belong to the calls of partitioned loops, and touch nothing else.
inline constexpr char kSiteMemory[] = "fusion.site";

// Called when all loops of a function that are partitioned are calls. Analyses of the function are no longer
// valid after.
void AddSyncs(llvm::Function& function, llvm::FunctionAnalysisManager& analyses);

}  // namespace fusion
