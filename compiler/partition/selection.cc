#include "compiler/partition/selection.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>

namespace fusion {

using namespace llvm;

namespace {

class Selection {
 public:
  // Returns true for what a loop may call: an exception that is thrown ends the loop, and LLVM may prove that
  // none is.
  bool MayBeInLoop(const Instruction& instruction) {
    auto* call = dyn_cast<CallBase>(&instruction);
    if (call == nullptr || isa<IntrinsicInst>(call) || call->doesNotReturn() || call->doesNotAccessMemory())
      return true;
    const Function* callee = call->getCalledFunction();
    return callee != nullptr && (callee->doesNotReturn() || MayBeInlined(*callee));
  }
  bool HasLoop(Function& function, bool all) {
    if (function.isDeclaration() || function.hasFnAttribute(kPartitioned)) return false;
    const DominatorTree dominators(function);
    const LoopInfo loops(dominators);
    if (all) return !loops.empty();
    const auto forest = loops.getLoopsInPreorder();
    return std::any_of(forest.begin(), forest.end(), [&](const Loop* loop) {
      return std::all_of(loop->block_begin(), loop->block_end(), [&](const BasicBlock* block) {
        return std::all_of(block->begin(), block->end(),
                           [&](const Instruction& instruction) { return MayBeInLoop(instruction); });
      });
    });
  }

 private:
  bool MayBeInlined(const Function& function) {
    auto [known, is_new] =
        inlinable_.try_emplace(&function, false);  // false while it is looked at: recursion
    if (!is_new || function.isDeclaration()) return known->second;
    const bool result = std::all_of(function.begin(), function.end(), [&](const BasicBlock& block) {
      return std::all_of(block.begin(), block.end(),
                         [&](const Instruction& instruction) { return MayBeInLoop(instruction); });
    });
    return inlinable_[&function] = result;
  }

  DenseMap<const Function*, bool> inlinable_;
};

}  // namespace

SetVector<Function*> SelectFunctions(Module& module, bool all) {
  Selection selection;
  SetVector<Function*> selected;
  for (Function& function : module)
    if (selection.HasLoop(function, all)) selected.insert(&function);
  for (size_t at = 0; at < selected.size(); ++at)
    for (BasicBlock& block : *selected[at])
      for (Instruction& instruction : block)
        if (auto* call = dyn_cast<CallBase>(&instruction))
          if (Function* callee = call->getCalledFunction(); callee != nullptr && !callee->isDeclaration())
            selected.insert(callee);
  return selected;
}

}  // namespace fusion
