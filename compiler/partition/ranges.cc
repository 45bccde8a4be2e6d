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

namespace {

// Returns true when the loop runs in every iteration of the one around it, or exactly where its count is not
// negative.
bool RunsAsCounted(const Loop& inner, const SCEV* last, const DominatorTree& dominators,
                   ExactNumbers& numbers) {
  const BasicBlock* latch = inner.getParentLoop()->getLoopLatch();
  if (inner.getLoopPreheader() == nullptr) return false;
  if (dominators.dominates(inner.getLoopPreheader(), latch)) return true;
  const BranchInst* guard = inner.getLoopGuardBranch();
  if (guard == nullptr || !dominators.dominates(guard->getParent(), latch)) return false;
  auto* comparison = dyn_cast<ICmpInst>(guard->getCondition());
  if (comparison == nullptr || !comparison->isRelational() || !comparison->isSigned()) return false;
  // The branch that skips the loop leads to where the loop leads.
  const BasicBlock* after = inner.getExitBlock();
  auto skips = [&](unsigned successor) {
    return after != nullptr && (guard->getSuccessor(successor) == after ||
                                guard->getSuccessor(successor) == after->getSingleSuccessor());
  };
  if (skips(0) == skips(1)) return false;
  CmpInst::Predicate predicate = skips(1) ? comparison->getPredicate() : comparison->getInversePredicate();
  Value *greater = comparison->getOperand(0), *smaller = comparison->getOperand(1);
  if (predicate == CmpInst::ICMP_SLT || predicate == CmpInst::ICMP_SLE) {
    std::swap(greater, smaller);
    predicate = CmpInst::getSwappedPredicate(predicate);
  }
  ScalarEvolution& evolution = numbers.evolution();
  const SCEV *from = numbers.Exact(evolution.getSCEV(smaller)),
             *to = numbers.Exact(evolution.getSCEV(greater));
  if (from == nullptr || to == nullptr) return false;
  const SCEV* difference = evolution.getMinusSCEV(to, from);
  if (predicate == CmpInst::ICMP_SGT)
    difference = evolution.getMinusSCEV(difference, evolution.getOne(numbers.type()));
  return difference == last;
}

}  // namespace

bool TouchesAll(const LoopAccess& access, const DominatorTree& dominators, ExactNumbers& numbers,
                SmallVectorImpl<const SCEV*>* repeats) {
  ScalarEvolution& evolution = numbers.evolution();
  const SCEV* run = evolution.getConstant(numbers.type(), static_cast<uint64_t>(access.bytes));
  const SCEV* offset = access.offset;
  if (!dominators.dominates(access.instruction->getParent(), access.nest.back()->getLoopLatch()))
    return false;
  for (size_t at = access.nest.size(); --at > 0;) {
    const Loop* inner = access.nest[at];
    const SCEV* last = numbers.LastCount(*inner);
    if (last == nullptr || !numbers.RunsToLastCount(*inner) ||
        !RunsAsCounted(*inner, last, dominators, numbers))
      return false;
    if (repeats != nullptr && evolution.isLoopInvariant(offset, inner) &&
        evolution.isLoopInvariant(run, inner)) {
      repeats->push_back(last);
      continue;
    }
    // The offset grows by what the loops inside touch.
    auto* counter = dyn_cast<SCEVAddRecExpr>(offset);
    if (counter == nullptr || counter->getLoop() != inner || counter->getStepRecurrence(evolution) != run)
      return false;
    // Only then are these iterations a function of the loop's own alone.
    if (at > 1 && !evolution.isLoopInvariant(last, access.nest[at - 1])) return false;
    run = evolution.getMulExpr(run, evolution.getAddExpr(last, evolution.getOne(numbers.type())));
    offset = counter->getStart();
  }
  return true;
}

}  // namespace fusion
