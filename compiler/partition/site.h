// The call in place of a loop: asks whether the loop is worth it and whether what was assumed holds, says
// what its iterations touch, and hands it to the run time (client/partition/site.h). The loop itself stays,
// for every "no".
#pragma once

#include <string>

#include "compiler/partition/dependence.h"
#include "compiler/partition/outline.h"
#include "compiler/partition/ranges.h"

namespace llvm {
class DominatorTree;
}

namespace fusion {

// The bytes that an iteration touches, of one or several accesses with the same bounds.
struct AccessRange {
  unsigned array;
  LinearBound first, end;  // bytes behind the array's address
  uint32_t flags;          // FUSION_PARTITION_READ and the others
};

struct LoopFacts {
  const LoopAccesses* accesses;
  std::vector<AccessRange> ranges;
  std::vector<std::pair<unsigned, unsigned>> may_overlap;  // arrays
  isl::set assumed;                                        // of parameters
  llvm::SetVector<const llvm::SCEV*> not_negative;         // exact numbers that are known before the loop
  std::vector<LoopSum> sums;
  const llvm::SCEV* last = nullptr;  // the number of iterations, less 1
  LinearBound last_column;           // no constant: an iteration has no columns
  // Instructions of the loop itself and of each loop inside, and how often these run in an iteration of the
  // loop.
  std::vector<std::pair<LoopNest, double>> work;
};

// Returns "", or why the call cannot be made: then nothing was changed.
std::string WhyNoSite(const LoopFacts& facts, ExactNumbers& numbers);
// Returns the conditions for people to read, "" where there are none.
std::string Conditions(const LoopFacts& facts);
// The text of the module's kernels, to which all of its calls refer: nothing before it is set.
llvm::GlobalVariable* DeviceText(llvm::Module& module);
void SetDeviceText(llvm::Module& module, const std::string& text);

// Takes away an outlined loop whose call is gone.
void EraseSite(llvm::Function& body);

// Makes the call. `loop` keeps its blocks; dominators and loop information of the function are no longer
// valid.
void MakeSite(const LoopFacts& facts, ExactNumbers& numbers, llvm::Loop& loop, const OutlinedLoop& outlined);

// Makes the call that asks whether the nest of `loop` is to run in another order, `entry` to `last`, whose
// end is open. `one` is replaced by what the call returns.
llvm::GlobalVariable* MakeOrderSite(const LoopFacts& facts, ExactNumbers& numbers, llvm::Loop& loop,
                                    const std::string& name, llvm::BasicBlock* entry, llvm::BasicBlock* last,
                                    llvm::Instruction* one);

}  // namespace fusion
