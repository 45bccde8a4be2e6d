#include "compiler/partition/loop_form.h"

#include <llvm/Analysis/IVDescriptors.h>

namespace fusion {

using namespace llvm;

std::string WhyNotCounted(const Loop& loop, ExactNumbers& numbers, std::vector<LoopSum>& sums) {
  ScalarEvolution& evolution = numbers.evolution();
  if (loop.getLoopPreheader() == nullptr || loop.getLoopLatch() == nullptr)
    return "it is entered or repeated at several places";
  if (loop.getExitingBlock() == nullptr || loop.getExitBlock() == nullptr) return "it may end early";
  if (loop.getExitingBlock() != loop.getLoopLatch()) return "it does not end with its test";
  if (isa<SCEVCouldNotCompute>(evolution.getBackedgeTakenCount(&loop)) || numbers.LastCount(loop) == nullptr)
    return "the number of its iterations is not known before";
  for (PHINode& counter : loop.getHeader()->phis()) {
    auto* recurrence = evolution.isSCEVable(counter.getType())
                           ? dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(&counter))
                           : nullptr;
    if (recurrence != nullptr && recurrence->getLoop() == &loop && recurrence->isAffine()) continue;
    if (std::optional<LoopSum> sum = FindSum(counter, loop)) {
      sums.push_back(std::move(*sum));
      continue;
    }
    RecurrenceDescriptor reduction;
    if (loop.isInnermost() &&
        RecurrenceDescriptor::isReductionPHI(&counter, const_cast<Loop*>(&loop), reduction) &&
        !RecurrenceDescriptor::isIntegerRecurrenceKind(reduction.getRecurrenceKind()))
      return "it sums up, and the order of a sum of floating-point numbers matters";
    return "a scalar is carried from iteration to iteration";
  }
  for (BasicBlock* block : loop.blocks())
    for (Instruction& instruction : *block)
      for (User* user : instruction.users()) {
        auto* outside = dyn_cast<Instruction>(user);
        if (outside == nullptr || loop.contains(outside->getParent())) continue;
        if (SumAfter(&instruction, sums) != nullptr) continue;
        if (!evolution.isSCEVable(instruction.getType()) ||
            !evolution.isLoopInvariant(evolution.getSCEVAtScope(&instruction, loop.getParentLoop()), &loop))
          return "a value of its last iteration is used after it";
      }
  return "";
}

}  // namespace fusion
