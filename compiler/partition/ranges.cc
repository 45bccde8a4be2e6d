#include "compiler/partition/ranges.h"

#include <llvm/IR/Dominators.h>

namespace fusion {

using namespace llvm;

LinearBound Ranges::Scaled(const LinearBound& bound, const SCEV* factor) const {
  if (bound.constant == nullptr) return {};
  return {numbers_.evolution().getMulExpr(bound.constant, factor),
          numbers_.evolution().getMulExpr(bound.slope, factor)};
}

// Sizes are taken to be positive, so -n is not, and that is asked before the loop.
bool Ranges::IsPositive(const SCEV* factor) {
  if (numbers_.evolution().isKnownNegative(factor)) return false;
  auto* product = dyn_cast<SCEVMulExpr>(factor);
  auto* constant = product == nullptr ? nullptr : dyn_cast<SCEVConstant>(product->getOperand(0));
  if (constant != nullptr && constant->getAPInt().isNegative()) {
    const SCEV* negative = numbers_.evolution().getNegativeSCEV(factor);
    if (!numbers_.evolution().isKnownNonNegative(negative)) not_negative_.insert(negative);
    return false;
  }
  if (!numbers_.evolution().isKnownNonNegative(factor)) not_negative_.insert(factor);
  return true;
}

LinearBound Ranges::Bound(const SCEV* number, bool most) {
  ScalarEvolution& evolution = numbers_.evolution();
  const Loop& loop = numbers_.loop();
  if (evolution.isLoopInvariant(number, &loop)) return {number, evolution.getZero(numbers_.type())};
  auto sum = [&](const LinearBound& one, const LinearBound& other) -> LinearBound {
    if (one.constant == nullptr || other.constant == nullptr) return {};
    return {evolution.getAddExpr(one.constant, other.constant), evolution.getAddExpr(one.slope, other.slope)};
  };
  if (auto* counter = dyn_cast<SCEVAddRecExpr>(number)) {
    const SCEV* step = counter->getStepRecurrence(evolution);
    if (!evolution.isLoopInvariant(step, &loop)) return {};
    const LinearBound start = Bound(counter->getStart(), most);
    if (counter->getLoop() == &loop) return sum(start, {evolution.getZero(numbers_.type()), step});
    if (IsPositive(step) != most) return start;
    const SCEV* last = numbers_.LastCount(*counter->getLoop());
    return last == nullptr ? LinearBound() : sum(start, Scaled(Bound(last, true), step));
  }
  if (isa<SCEVAddExpr>(number)) {
    LinearBound all{evolution.getZero(numbers_.type()), evolution.getZero(numbers_.type())};
    for (const SCEV* operand : cast<SCEVAddExpr>(number)->operands()) all = sum(all, Bound(operand, most));
    return all;
  }
  if (auto* product = dyn_cast<SCEVMulExpr>(number)) {
    const SCEV* changing = nullptr;
    SmallVector<const SCEV*, 4> factors;
    for (const SCEV* operand : product->operands())
      if (evolution.isLoopInvariant(operand, &loop))
        factors.push_back(operand);
      else if (changing != nullptr)
        return {};
      else
        changing = operand;
    const SCEV* factor = evolution.getMulExpr(factors);
    return Scaled(Bound(changing, IsPositive(factor) ? most : !most), factor);
  }
  // One of the operands bounds a maximum from below, and a minimum from above; the first one whose bound is
  // known.
  if (most ? isa<SCEVSMinExpr>(number) : isa<SCEVSMaxExpr>(number))
    for (const SCEV* operand : cast<SCEVNAryExpr>(number)->operands())
      if (LinearBound bound = Bound(operand, most); bound.constant != nullptr) return bound;
  return {};
}

bool TouchesAll(const LoopAccess& access, const DominatorTree& dominators, ExactNumbers& numbers) {
  ScalarEvolution& evolution = numbers.evolution();
  const BasicBlock* block = access.instruction->getParent();
  const SCEV* run = evolution.getConstant(numbers.type(), static_cast<uint64_t>(access.bytes));
  const SCEV* offset = access.offset;
  for (size_t at = access.nest.size(); at-- > 0;) {
    const Loop* around = access.nest[at];
    if (!dominators.dominates(block, around->getLoopLatch())) return false;
    // The offset grows, or shrinks, by what the loops inside touch.
    auto* counter = dyn_cast<SCEVAddRecExpr>(offset);
    if (counter == nullptr || counter->getLoop() != around) return false;
    const SCEV* step = counter->getStepRecurrence(evolution);
    if (step != run && evolution.getNegativeSCEV(step) != run) return false;
    const SCEV* last = at == 0 ? evolution.getZero(numbers.type()) : numbers.LastCount(*around);
    if (last == nullptr || !evolution.isLoopInvariant(last, around) ||
        (at > 0 && (around->getExitingBlock() == nullptr || step != run)))
      return false;
    run = evolution.getMulExpr(run, evolution.getAddExpr(last, evolution.getOne(numbers.type())));
    offset = counter->getStart();
    block = around->getLoopPreheader();
    if (block == nullptr) return false;
  }
  return true;
}

}  // namespace fusion
