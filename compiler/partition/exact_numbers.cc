#include "compiler/partition/exact_numbers.h"

#include <llvm/IR/Instructions.h>

#include <algorithm>

namespace fusion {

using namespace llvm;

Type* ExactNumbers::type() const { return Type::getInt64Ty(evolution_.getContext()); }

void ExactNumbers::Limit(const SCEV* number, unsigned bits) {
  if (isa<SCEVConstant>(number) && cast<SCEVConstant>(number)->getAPInt().getSignificantBits() <= bits)
    return;
  const Bound bound{number, bits};
  if (std::find(bounds_.begin(), bounds_.end(), bound) == bounds_.end()) bounds_.push_back(bound);
}

const SCEV* ExactNumbers::Exact(const SCEV* number) {
  auto known = known_.find(number);
  if (known != known_.end()) return known->second;
  const SCEV* exact = Find(number);
  known_[number] = exact;
  return exact;
}

// Sums and products of words are those of integers but for multiples of the word: only where a word is read
// as a number, by an extension or a comparison, must it not have wrapped.
const SCEV* ExactNumbers::OperandOfWord(const SCEV* operand, bool is_signed) {
  const unsigned bits = static_cast<unsigned>(evolution_.getTypeSizeInBits(operand->getType()));
  // A size is one number, whether a text reads it as signed or as unsigned.
  if (isa<SCEVUnknown>(operand) && evolution_.isLoopInvariant(operand, &loop_)) {
    const SCEV* exact = evolution_.getNoopOrSignExtend(operand, type());
    if (!is_signed && !evolution_.isKnownNonNegative(operand)) not_negative_.insert(exact);
    return exact;
  }
  const SCEV* exact = Exact(operand);
  if (exact == nullptr) return nullptr;
  if (is_signed || evolution_.isKnownNonNegative(operand)) {
    Limit(exact, std::min(bits - 1, 62u));
  } else {
    Limit(exact, std::min(bits, 62u));
    not_negative_.insert(exact);
  }
  return exact;
}

const SCEV* ExactNumbers::OfOperands(const SCEVNAryExpr& expression) {
  const bool is_unsigned = isa<SCEVUMaxExpr>(expression) || isa<SCEVUMinExpr>(expression) ||
                           isa<SCEVSequentialUMinExpr>(expression);
  const bool compares = is_unsigned || isa<SCEVSMaxExpr>(expression) || isa<SCEVSMinExpr>(expression);
  SmallVector<const SCEV*, 4> operands;
  for (const SCEV* operand : expression.operands()) {
    const SCEV* exact = compares ? OperandOfWord(operand, !is_unsigned) : Exact(operand);
    if (exact == nullptr) return nullptr;
    operands.push_back(exact);
  }
  if (isa<SCEVAddExpr>(expression)) return evolution_.getAddExpr(operands);
  if (isa<SCEVMulExpr>(expression)) return evolution_.getMulExpr(operands);
  if (auto* counter = dyn_cast<SCEVAddRecExpr>(&expression))
    return counter->isAffine() ? evolution_.getAddRecExpr(operands, counter->getLoop(), SCEV::FlagAnyWrap)
                               : nullptr;
  if (isa<SCEVSMaxExpr>(expression) || isa<SCEVUMaxExpr>(expression)) return evolution_.getSMaxExpr(operands);
  return evolution_.getSMinExpr(operands);
}

const SCEV* ExactNumbers::Find(const SCEV* number) {
  if (!number->getType()->isIntegerTy() || evolution_.getTypeSizeInBits(number->getType()) > 64)
    return nullptr;
  if (isa<SCEVConstant>(number)) return evolution_.getNoopOrSignExtend(number, type());
  if (auto* cast = dyn_cast<SCEVSignExtendExpr>(number)) return OperandOfWord(cast->getOperand(), true);
  if (auto* cast = dyn_cast<SCEVZeroExtendExpr>(number)) return OperandOfWord(cast->getOperand(), false);
  if (auto* cast = dyn_cast<SCEVTruncateExpr>(number))
    if (evolution_.getTypeSizeInBits(cast->getOperand()->getType()) <= 64) return Exact(cast->getOperand());
  if (auto* expression = dyn_cast<SCEVNAryExpr>(number))
    if (const SCEV* exact = OfOperands(*expression)) return exact;
  if (evolution_.isLoopInvariant(number, &loop_)) return evolution_.getNoopOrSignExtend(number, type());
  return nullptr;
}

const ICmpInst* EndOf(const Loop& loop) {
  BasicBlock* exiting = loop.getExitingBlock();
  if (exiting == nullptr) return nullptr;
  auto* branch = dyn_cast<BranchInst>(exiting->getTerminator());
  return branch != nullptr && branch->isConditional() ? dyn_cast<ICmpInst>(branch->getCondition()) : nullptr;
}

bool ExactNumbers::RunsToLastCount(const Loop& inner) const {
  return inner.getExitingBlock() != nullptr && inner.getExitingBlock() == inner.getLoopLatch() &&
         !isa<SCEVCouldNotCompute>(evolution_.getBackedgeTakenCount(&inner));
}

const SCEV* ExactNumbers::LastCount(const Loop& inner) {
  const SCEV* count = evolution_.getSymbolicMaxBackedgeTakenCount(&inner);
  if (isa<SCEVCouldNotCompute>(count)) return nullptr;
  if (isa<SCEVConstant>(count)) {
    const APInt& value = cast<SCEVConstant>(count)->getAPInt();
    return value.getActiveBits() < 62 ? evolution_.getConstant(type(), value.getZExtValue()) : nullptr;
  }
  const SCEV* word = count;
  while (auto* cast = dyn_cast<SCEVZeroExtendExpr>(word)) word = cast->getOperand();
  const SCEV* exact = Exact(word);
  if (exact == nullptr) return nullptr;
  Limit(exact, std::min(static_cast<unsigned>(evolution_.getTypeSizeInBits(word->getType())) - 1, 62u));
  // The loop itself is asked at run time whether its count is negative.
  if (&inner == &loop_ || (word == count && evolution_.isKnownNonNegative(word))) return exact;
  const ICmpInst* ending = EndOf(inner);
  // A loop that ends by <, <=, > or >= is entered only where the difference of its bounds is not negative:
  // LLVM takes the maximum with 0 where it cannot prove that. One that ends by != may count around the whole
  // word.
  if (ending != nullptr && ending->isRelational() && ending->isSigned()) return exact;
  if (ending != nullptr && ending->isRelational()) {  // numbers beyond the signed ones would seem negative
    not_negative_.insert(evolution_.getAddExpr(exact, evolution_.getOne(type())));
    return exact;
  }
  const SCEV* zero = evolution_.getZero(word->getType());
  return evolution_.isLoopEntryGuardedByCond(&inner, ICmpInst::ICMP_SGE, word, zero) ? exact : nullptr;
}

}  // namespace fusion
