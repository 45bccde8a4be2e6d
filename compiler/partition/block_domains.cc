#include "compiler/partition/block_domains.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/LoopInfo.h>

#include <algorithm>

namespace fusion {

using namespace llvm;

BlockDomains::BlockDomains(const LoopInfo& loops, ExactNumbers& numbers, IterationSpace& space)
    : loops_(loops), numbers_(numbers), space_(space) {
  assumed_ = isl::manage(isl_set_universe(isl_space_params_alloc(space.context().get(), 0)));
  for (const BasicBlock* block :
       ReversePostOrderTraversal<const Function*>(numbers.loop().getHeader()->getParent()))
    order_[block] = static_cast<unsigned>(order_.size());
}

std::string BlockDomains::Find(const Loop& loop, isl::set entered) {
  LoopNest nest = NestOf(*loop.getHeader(), numbers_.loop(), loops_);
  const SCEV* last = numbers_.LastCount(loop);
  if (loop.getLoopPreheader() == nullptr || loop.getExitingBlock() == nullptr ||
      loop.getExitingBlock() != loop.getLoopLatch() || loop.getExitBlock() == nullptr || last == nullptr ||
      isa<SCEVCouldNotCompute>(numbers_.evolution().getBackedgeTakenCount(&loop)))
    return "a loop inside has no count that is known before";
  const LoopNest around(nest.begin(), nest.end() - 1);
  const isl::pw_aff most_around = space_.Affine(last, around), most = space_.Affine(last, nest);
  if (most.is_null() || most_around.is_null()) return "a loop inside has no count that is affine";
  // A loop that is entered runs once at least: only so is its last count the number that it seems to be.
  if (!around.empty()) {
    const isl::set never = entered.intersect(most_around.lt_set(space_.Constant(0, around)));
    assumed_ = assumed_.subtract(never.params());
  }
  isl::set domain = around.empty()
                        ? isl::manage(isl_set_universe(isl_set_get_space(space_.Domain(nest).get())))
                        : isl::manage(isl_set_add_dims(entered.copy(), isl_dim_set, 1));
  const auto counter = static_cast<unsigned>(nest.size() - 1);
  domain = isl::manage(isl_set_lower_bound_si(domain.release(), isl_dim_set, counter, 0));
  const isl::pw_aff count = isl::manage(isl_pw_aff_from_aff(isl_aff_var_on_domain(
      isl_local_space_from_space(isl_set_get_space(domain.get())), isl_dim_set, counter)));
  domains_[loop.getHeader()] = domain.intersect(count.le_set(most));

  std::vector<BasicBlock*> blocks(loop.block_begin(), loop.block_end());
  std::sort(blocks.begin(), blocks.end(), [&](const BasicBlock* one, const BasicBlock* other) {
    return order_.lookup(one) < order_.lookup(other);
  });
  for (BasicBlock* block : blocks) {
    const Loop* of_block = loops_.getLoopFor(block);
    if (of_block != &loop) {
      if (block == of_block->getHeader() && of_block->getParentLoop() == &loop) {
        if (of_block->getLoopPreheader() == nullptr) return "a loop inside is entered at several places";
        if (std::string why = Find(*of_block, domains_[of_block->getLoopPreheader()]); !why.empty())
          return why;
      }
      continue;
    }
    if (block == loop.getHeader()) continue;
    isl::set reached;
    bool is_first = true;
    for (BasicBlock* before : predecessors(block)) {
      isl::set from;
      if (const Loop* of_before = loops_.getLoopFor(before); of_before != &loop) {
        while (of_before->getParentLoop() != &loop) of_before = of_before->getParentLoop();
        from = domains_[of_before->getLoopPreheader()];
      } else {
        from = Along(*before, *block, nest);
      }
      if (from.is_null()) return "what it does depends on a condition" + LineOf(*before->getTerminator());
      reached = is_first ? from : reached.unite(from);
      is_first = false;
    }
    domains_[block] = reached.coalesce();
  }
  return "";
}

isl::set BlockDomains::Along(const BasicBlock& before, const BasicBlock& block, const LoopNest& nest) {
  auto* branch = dyn_cast<BranchInst>(before.getTerminator());
  const isl::set domain = domains_[&before];
  if (branch == nullptr || domain.is_null()) return {};
  if (branch->isUnconditional() || branch->getSuccessor(0) == branch->getSuccessor(1)) return domain;
  if (auto* constant = dyn_cast<ConstantInt>(branch->getCondition())) {
    const bool is_taken = branch->getSuccessor(constant->isZero() ? 1 : 0) == &block;
    return is_taken ? domain : isl::manage(isl_set_empty(isl_set_get_space(domain.get())));
  }
  auto* comparison = dyn_cast<ICmpInst>(branch->getCondition());
  if (comparison == nullptr || !comparison->getOperand(0)->getType()->isIntegerTy()) return {};
  auto operand = [&](unsigned which) -> isl::pw_aff {
    const SCEV* number = numbers_.OperandOfWord(
        numbers_.evolution().getSCEVAtScope(comparison->getOperand(which), nest.back()),
        !comparison->isUnsigned());
    return number == nullptr ? isl::pw_aff() : space_.Affine(number, nest);
  };
  const isl::pw_aff one = operand(0), other = operand(1);
  if (one.is_null() || other.is_null()) return {};
  const CmpInst::Predicate predicate =
      branch->getSuccessor(0) == &block ? comparison->getPredicate() : comparison->getInversePredicate();
  switch (predicate) {
    case CmpInst::ICMP_EQ:
      return domain.intersect(one.eq_set(other));
    case CmpInst::ICMP_NE:
      return domain.intersect(one.ne_set(other));
    case CmpInst::ICMP_SLT:
    case CmpInst::ICMP_ULT:
      return domain.intersect(one.lt_set(other));
    case CmpInst::ICMP_SLE:
    case CmpInst::ICMP_ULE:
      return domain.intersect(one.le_set(other));
    case CmpInst::ICMP_SGT:
    case CmpInst::ICMP_UGT:
      return domain.intersect(one.gt_set(other));
    case CmpInst::ICMP_SGE:
    case CmpInst::ICMP_UGE:
      return domain.intersect(one.ge_set(other));
    default:
      return {};
  }
}

}  // namespace fusion
