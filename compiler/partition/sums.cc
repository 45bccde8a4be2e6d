#include "compiler/partition/sums.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>

namespace fusion {

using namespace llvm;

namespace {

// Returns what joins the parts of a sum that has this step, or BAD_BINOP.
AtomicRMWInst::BinOp OperationOf(const Instruction& step) {
  switch (step.getOpcode()) {
    case Instruction::Add:
    case Instruction::Sub:
      return AtomicRMWInst::Add;
    case Instruction::And:
      return AtomicRMWInst::And;
    case Instruction::Or:
      return AtomicRMWInst::Or;
    case Instruction::Xor:
      return AtomicRMWInst::Xor;
    default:
      break;
  }
  if (auto* intrinsic = dyn_cast<IntrinsicInst>(&step)) switch (intrinsic->getIntrinsicID()) {
      case Intrinsic::smax:
        return AtomicRMWInst::Max;
      case Intrinsic::smin:
        return AtomicRMWInst::Min;
      case Intrinsic::umax:
        return AtomicRMWInst::UMax;
      case Intrinsic::umin:
        return AtomicRMWInst::UMin;
      default:
        break;
    }
  return AtomicRMWInst::BAD_BINOP;
}

Constant* NeutralOf(AtomicRMWInst::BinOp operation, Type* type) {
  const unsigned bits = type->getIntegerBitWidth();
  if (operation == AtomicRMWInst::Max) return ConstantInt::get(type, APInt::getSignedMinValue(bits));
  if (operation == AtomicRMWInst::Min) return ConstantInt::get(type, APInt::getSignedMaxValue(bits));
  return operation == AtomicRMWInst::And || operation == AtomicRMWInst::UMin ? Constant::getAllOnesValue(type)
                                                                             : Constant::getNullValue(type);
}

// A step joins one partial sum and something else; between steps partial sums are chosen, and nothing else.
bool IsPartial(const Instruction& value, const SetVector<Instruction*>& partials) {
  auto is_partial = [&](const Value* operand) {
    return partials.contains(const_cast<Instruction*>(dyn_cast<Instruction>(operand)));
  };
  if (auto* choice = dyn_cast<PHINode>(&value)) return all_of(choice->incoming_values(), is_partial);
  if (auto* choice = dyn_cast<SelectInst>(&value))
    return is_partial(choice->getTrueValue()) && is_partial(choice->getFalseValue()) &&
           !is_partial(choice->getCondition());
  const bool first = is_partial(value.getOperand(0)), second = is_partial(value.getOperand(1));
  return first != second && (first || value.getOpcode() != Instruction::Sub);
}

}  // namespace

std::optional<LoopSum> FindSum(PHINode& before, const Loop& loop) {
  auto* type = dyn_cast<IntegerType>(before.getType());
  auto* after = dyn_cast<Instruction>(before.getIncomingValueForBlock(loop.getLoopLatch()));
  if (type == nullptr || after == nullptr) return std::nullopt;
  if (const unsigned bits = type->getBitWidth(); bits != 8 && bits != 16 && bits != 32 && bits != 64)
    return std::nullopt;
  LoopSum sum{&before, after, {}, AtomicRMWInst::BAD_BINOP, nullptr};
  sum.partials.insert(&before);
  for (size_t at = 0; at < sum.partials.size(); ++at) {
    Instruction* value = sum.partials[at];
    for (User* user : value->users()) {
      auto* next = cast<Instruction>(user);
      if (!loop.contains(next)) {
        if (value != after) return std::nullopt;
        continue;
      }
      if (next->getType() != type) return std::nullopt;
      if (!isa<PHINode>(next) && !isa<SelectInst>(next)) {
        const AtomicRMWInst::BinOp operation = OperationOf(*next);
        if (operation == AtomicRMWInst::BAD_BINOP) return std::nullopt;
        if (sum.operation != AtomicRMWInst::BAD_BINOP && sum.operation != operation) return std::nullopt;
        sum.operation = operation;
      }
      sum.partials.insert(next);
    }
  }
  if (sum.operation == AtomicRMWInst::BAD_BINOP || !sum.partials.contains(after)) return std::nullopt;
  for (const Instruction* value : sum.partials)
    if (value != &before && !IsPartial(*value, sum.partials)) return std::nullopt;
  sum.neutral = NeutralOf(sum.operation, type);
  return sum;
}

// The compiler numbers the values of a variable: sum.07.
std::string NameOf(const LoopSum& sum) {
  const StringRef name = sum.before->getName().split('.').first;
  return name.empty() ? "a sum" : name.str();
}

const LoopSum* SumAfter(const Value* value, const std::vector<LoopSum>& sums) {
  auto sum = find_if(sums, [&](const LoopSum& candidate) { return candidate.after == value; });
  return sum == sums.end() ? nullptr : &*sum;
}

}  // namespace fusion
