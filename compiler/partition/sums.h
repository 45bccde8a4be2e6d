// Integers that a loop sums up over its iterations: the only values that iterations may hand on to each
// other.
#pragma once

#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>

#include <optional>
#include <string>
#include <vector>

namespace fusion {

// A sum, or what and, or, xor, minima and maxima make of the iterations: all are exact in any order, and sums
// wrap. What an iteration adds does not depend on the value before it, so any thread may begin with `neutral`
// and its part be added afterwards.
struct LoopSum {
  llvm::PHINode* before;                         // in the loop's header: the value before an iteration
  llvm::Instruction* after;                      // the value after it
  llvm::SetVector<llvm::Instruction*> partials;  // all values that it has between the two, and these
  llvm::AtomicRMWInst::BinOp operation;          // that joins two parts
  llvm::Constant* neutral;
};

// Returns nothing where the value is of another kind, or is used in the loop.
std::optional<LoopSum> FindSum(llvm::PHINode& before, const llvm::Loop& loop);

// "sum" or "a sum": how people know it.
std::string NameOf(const LoopSum& sum);

// Returns the sum that `value` is after an iteration, or null.
const LoopSum* SumAfter(const llvm::Value* value, const std::vector<LoopSum>& sums);

}  // namespace fusion
