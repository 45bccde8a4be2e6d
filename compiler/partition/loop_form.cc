#include "compiler/partition/loop_form.h"

#include <llvm/Analysis/IVDescriptors.h>

#include "compiler/partition/accesses.h"

namespace fusion {

using namespace llvm;

namespace {

std::string WhereItEnds(const Loop& loop) {
  SmallVector<BasicBlock*, 4> ends;
  loop.getExitingBlocks(ends);
  if (ends.empty()) return "it does not end";
  for (const BasicBlock* end : ends) {
    if (end == loop.getLoopLatch()) continue;
    const Instruction& last = *end->getTerminator();
    if (auto* call = dyn_cast<InvokeInst>(&last))
      return "it calls " + NameOfCallee(*call) + ", which may throw" + LineOf(last);
    return "it may end early" + LineOf(last);
  }
  return "it may end early";
}

}  // namespace

std::string WhyNotCounted(const Loop& loop, ExactNumbers& numbers, std::vector<LoopSum>& sums) {
  ScalarEvolution& evolution = numbers.evolution();
  if (loop.getLoopPreheader() == nullptr || loop.getLoopLatch() == nullptr)
    return "it is entered or repeated at several places";
  if (loop.getExitingBlock() == nullptr || loop.getExitBlock() == nullptr) return WhereItEnds(loop);
  if (loop.getExitingBlock() != loop.getLoopLatch()) return "it does not end with its test";
  if (isa<SCEVCouldNotCompute>(evolution.getBackedgeTakenCount(&loop)) || numbers.LastCount(loop) == nullptr)
    return "the number of its iterations is not known before";
  for (PHINode& counter : loop.getHeader()->phis()) {
    auto* recurrence = evolution.isSCEVable(counter.getType())
                           ? dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(&counter))
                           : nullptr;
    if (recurrence != nullptr && recurrence->getLoop() == &loop && recurrence->isAffine()) {
      if (isa<SCEVConstant>(recurrence->getStepRecurrence(evolution))) continue;
      return "it has a counter whose step is not constant";
    }
    if (std::optional<LoopSum> sum = FindSum(counter, loop)) {
      sums.push_back(std::move(*sum));
      continue;
    }
    RecurrenceDescriptor reduction;
    if (loop.isInnermost() &&
        RecurrenceDescriptor::isReductionPHI(&counter, const_cast<Loop*>(&loop), reduction) &&
        !RecurrenceDescriptor::isIntegerRecurrenceKind(reduction.getRecurrenceKind()))
      return "it sums up, and the order of a sum of floating-point numbers matters";
    // The compiler numbers the values of a variable: last.07.
    const StringRef name = counter.getName().split('.').first;
    return (name.empty() ? "a scalar" : name.str()) + " is carried from iteration to iteration";
  }
  for (BasicBlock* block : loop.blocks())
    for (Instruction& instruction : *block)
      for (User* user : instruction.users()) {
        auto* outside = dyn_cast<Instruction>(user);
        if (outside == nullptr || loop.contains(outside->getParent())) continue;
        if (SumAfter(&instruction, sums) != nullptr) continue;
        if (!evolution.isSCEVable(instruction.getType()) ||
            !evolution.isLoopInvariant(evolution.getSCEVAtScope(&instruction, loop.getParentLoop()), &loop))

          return "a value of its last iteration is used after it" + LineOf(instruction);
      }
  return "";
}

}  // namespace fusion
