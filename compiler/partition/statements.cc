#include "compiler/partition/statements.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>

namespace fusion {

using namespace llvm;

namespace {

// Returns true when the number is made of counters of `nest` and of what is known before the loop.
bool IsOfCounters(const SCEV* number, const LoopNest& nest, ExactNumbers& numbers) {
  if (numbers.evolution().isLoopInvariant(number, &numbers.loop())) return true;
  if (auto* counter = dyn_cast<SCEVAddRecExpr>(number)) {
    if (!counter->isAffine() || !is_contained(nest, counter->getLoop())) return false;
  } else if (!isa<SCEVAddExpr>(number) && !isa<SCEVMulExpr>(number) && !isa<SCEVSMaxExpr>(number) &&
             !isa<SCEVSMinExpr>(number)) {
    return false;
  }
  return all_of(cast<SCEVNAryExpr>(number)->operands(),
                [&](const SCEV* operand) { return IsOfCounters(operand, nest, numbers); });
}

// Finds for which counters each block of a loop runs.
class BlockDomains {
 public:
  BlockDomains(const LoopInfo& loops, ExactNumbers& numbers, IterationSpace& space, const NestStatements& nest)
      : loops_(loops), numbers_(numbers), space_(space), nest_(nest) {
    assumed_ = isl::manage(isl_set_universe(isl_space_params_alloc(space.context().get(), 0)));
  }

  // Returns "", or why that is not known.
  std::string Find(const Loop& loop, const isl::set entered) {
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
      return nest_.order.lookup(&one->front()) < nest_.order.lookup(&other->front());
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
  isl::set Of(const BasicBlock& block) { return domains_[&block]; }
  const isl::set& assumed() const { return assumed_; }

 private:
  // Returns the counters for which `before` runs and is followed by `block`. Null: unknown.
  isl::set Along(const BasicBlock& before, const BasicBlock& block, const LoopNest& nest) {
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
    const CmpInst::Predicate predicate = branch->getSuccessor(0) == &block
                                             ? comparison->getPredicate()
                                             : comparison->getInversePredicate();
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

  const LoopInfo& loops_;
  ExactNumbers& numbers_;
  IterationSpace& space_;
  const NestStatements& nest_;
  isl::set assumed_;
  DenseMap<const BasicBlock*, isl::set> domains_;
};

// Collects what a statement is computed from.
class Slice {
 public:
  Slice(Statement& statement, const LoopAccesses& accesses, ExactNumbers& numbers, const NestStatements& nest)
      : statement_(statement), accesses_(accesses), numbers_(numbers), nest_(nest) {}

  std::string Add(Value* value) {
    auto* instruction = dyn_cast<Instruction>(value);
    if (instruction == nullptr || !numbers_.loop().contains(instruction) || !seen_.insert(instruction).second)
      return "";
    if (const SCEV* number = NumberOfCounters(value, statement_.nest, numbers_)) {
      numbers_.Limit(number, 62);
      return "";
    }
    if (auto* phi = dyn_cast<PHINode>(instruction)) {
      if (const LoopAccess* place = nest_.in_memory.lookup(phi)) {
        if (std::string why = AddAccess(*phi, *place); !why.empty()) return why;
        return Add(getLoadStorePointerOperand(place->instruction));
      }
      return "a value is carried from iteration to iteration" + LineOf(*instruction);
    }
    if (isa<LoadInst>(instruction)) {
      const auto place =
          std::find_if(accesses_.accesses.begin(), accesses_.accesses.end(),
                       [&](const LoopAccess& access) { return access.instruction == instruction; });
      if (place == accesses_.accesses.end()) return "a local array is used" + LineOf(*instruction);
      if (std::string why = AddAccess(*instruction, *place); !why.empty()) return why;
    } else if (!isa<BinaryOperator>(instruction) && !isa<UnaryOperator>(instruction) &&
               !isa<CastInst>(instruction) && !isa<GetElementPtrInst>(instruction) &&
               !isa<SelectInst>(instruction) && !isa<CmpInst>(instruction) &&
               !isa<FreezeInst>(instruction) && !isa<IntrinsicInst>(instruction)) {
      return "it has an instruction that cannot be moved" + LineOf(*instruction);
    }
    for (Value* operand : instruction->operands())
      if (std::string why = Add(operand); !why.empty()) return why;
    return "";
  }
  const DenseSet<const Instruction*>& seen() const { return seen_; }

 private:
  std::string AddAccess(const Instruction& instruction, const LoopAccess& place) {
    LoopNest nest;
    for (const Loop* loop : statement_.nest)
      if (loop->contains(&instruction)) nest.push_back(loop);
    // The element is known where the statement runs.
    if (CommonLoops(place.nest, statement_.nest) != place.nest.size())
      return "a value of a loop is used after it" + LineOf(instruction);
    statement_.accesses.push_back({&place, false, nest, nest_.order.lookup(&instruction)});
    return "";
  }

  Statement& statement_;
  const LoopAccesses& accesses_;
  ExactNumbers& numbers_;
  const NestStatements& nest_;
  DenseSet<const Instruction*> seen_;
};

}  // namespace

const SCEV* NumberOfCounters(Value* value, const LoopNest& nest, ExactNumbers& numbers) {
  if (!value->getType()->isIntegerTy() || !numbers.evolution().isSCEVable(value->getType())) return nullptr;
  const SCEV* number = numbers.Exact(numbers.evolution().getSCEV(value));
  return number != nullptr && IsOfCounters(number, nest, numbers) ? number : nullptr;
}

size_t CommonLoops(const LoopNest& one, const LoopNest& other) {
  size_t common = 0;
  while (common < one.size() && common < other.size() && one[common] == other[common]) ++common;
  return common;
}

isl::map Earlier(const StatementAccess& first, const StatementAccess& second, const NestStatements& nest,
                 IterationSpace& space) {
  const size_t common = CommonLoops(first.nest, second.nest);
  auto order = [&](const StatementAccess& access) {
    return access.nest.size() > common ? nest.order.lookup(&access.nest[common]->getHeader()->front())
                                       : access.order;
  };
  auto tuple = [](char letter, size_t size) {
    std::string text = "[";
    for (size_t at = 0; at < size; ++at) text += (at == 0 ? "" : ", ") + (letter + std::to_string(at));
    return text + "]";
  };
  std::string equal = "true", text;
  for (size_t at = 0; at < common; ++at) {
    const std::string one = "a" + std::to_string(at), other = "b" + std::to_string(at);
    text += (at == 0 ? "(" : " or (") + equal + " and " + one + " < " + other + ")";
    equal += " and " + one + " = " + other;
  }
  if (order(first) < order(second)) text += (text.empty() ? "(" : " or (") + equal + ")";
  if (text.empty()) text = "false";
  return isl::map(space.context(), "{ " + tuple('a', first.nest.size()) + " -> " +
                                       tuple('b', second.nest.size()) + " : " + text + " }");
}

namespace {

// Finds numbers that a loop keeps in a register, and that may as well be in memory: LLVM moves the load of
// a[i][j] += ... out of the loop, and sometimes the store, and programs do the same with variables.
class NumbersInMemory {
 public:
  NumbersInMemory(const LoopInfo& loops, const LoopAccesses& accesses, ExactNumbers& numbers,
                  BlockDomains& domains, NestStatements& found)
      : loops_(loops), accesses_(accesses), numbers_(numbers), domains_(domains), found_(found) {}

  // Returns loads that are not needed then.
  DenseSet<const Instruction*> Find() {
    for (const Loop* inner : numbers_.loop().getLoopsInPreorder()) {
      if (inner == &numbers_.loop()) continue;
      for (const PHINode& phi : inner->getHeader()->phis()) {
        const LoopNest nest = NestOf(*inner->getHeader(), numbers_.loop(), loops_);
        const LoopAccess* first = First(phi, nest);
        auto* next = dyn_cast<Instruction>(phi.getIncomingValueForBlock(inner->getLoopLatch()));
        if (first == nullptr || next == nullptr || !inner->contains(next)) continue;
        if (IsStoredInEach(phi, *next, *first, nest) || IsStoredAfter(phi, *next, *first, nest))
          not_needed_.insert(first->instruction);
      }
    }
    return not_needed_;
  }

 private:
  unsigned OrderOf(const Instruction& instruction) const { return found_.order.lookup(&instruction); }
  static bool IsSame(const Statement& statement, const LoopAccess& place) {
    return statement.at == statement.place->instruction && statement.place->array == place.array &&
           statement.place->offset == place.offset &&
           getLoadStoreType(statement.place->instruction) == getLoadStoreType(place.instruction);
  }

  // Returns the load, or the store, in the loop around whose element the number is before the loop.
  const LoopAccess* First(const PHINode& phi, const LoopNest& nest) {
    const BasicBlock& before = *nest.back()->getLoopPreheader();
    const Value* value = phi.getIncomingValueForBlock(&before);
    const LoopAccess* last = nullptr;
    for (const LoopAccess& access : accesses_.accesses) {
      auto* store = dyn_cast<StoreInst>(access.instruction);
      if ((store == nullptr ? access.instruction != value : store->getValueOperand() != value) ||
          access.offset == nullptr || access.nest != LoopNest(nest.begin(), nest.end() - 1) ||
          !IsOfCounters(access.offset, access.nest, numbers_) || OrderOf(*access.instruction) > OrderOf(phi) ||
          !domains_.Of(before).is_subset(domains_.Of(*access.instruction->getParent())).is_true())
        continue;
      if (last == nullptr || OrderOf(*last->instruction) < OrderOf(*access.instruction)) last = &access;
    }
    return last;
  }

  // Finds the numbers after the loop: of its last iteration, or of before where it is not entered. Returns
  // false where others are among them.
  bool FindAfter(const PHINode& phi, const Instruction& next, const LoopNest& around,
                 SetVector<const PHINode*>& after) {
    const Loop& inner = *loops_.getLoopFor(phi.getParent());
    const Value* first = phi.getIncomingValueForBlock(inner.getLoopPreheader());
    auto add_users = [&](const Instruction& of) {
      for (const User* user : of.users())
        if (auto* other = dyn_cast<PHINode>(user); other != nullptr && !inner.contains(other))
          after.insert(other);
    };
    add_users(next);
    const DominatorTree dominators(*inner.getHeader()->getParent());
    for (size_t at = 0; at < after.size(); ++at) {
      const PHINode& number = *after[at];
      if (NestOf(*number.getParent(), numbers_.loop(), loops_) != around ||
          number.getParent() == around.back()->getHeader())
        return false;
      for (unsigned way = 0; way < number.getNumIncomingValues(); ++way) {
        const Value* value = number.getIncomingValue(way);
        const bool is_skipped =
            value == first && dominators.dominates(number.getIncomingBlock(way), inner.getHeader());
        if (value != &next && !is_contained(after, value) && !is_skipped) return false;
      }
      add_users(number);
    }
    return true;
  }

  // Each iteration stores the number where it was before.
  bool IsStoredInEach(const PHINode& phi, const Instruction& next, const LoopAccess& first,
                      const LoopNest& nest) {
    const isl::set all = domains_.Of(*phi.getParent());
    const StatementAccess from{&first, false, first.nest, OrderOf(*first.instruction)};
    for (const Statement& statement : found_.statements) {
      if (statement.value != &next || statement.nest != nest || !IsSame(statement, first) ||
          !domains_.Of(*statement.at->getParent()).is_equal(all).is_true())
        continue;
      const LoopAccess* place = statement.place;
      found_.in_memory[&phi] = place;
      found_.untouched.push_back({from, {place, false, nest, OrderOf(phi)}, all, {place}, false});
      SetVector<const PHINode*> after;
      if (!FindAfter(phi, next, first.nest, after)) return true;
      for (const PHINode* number : after) {
        found_.in_memory[number] = place;
        found_.untouched.push_back({from,
                                    {place, false, first.nest, OrderOf(*number)},
                                    domains_.Of(*number->getParent()),
                                    {place},
                                    false});
      }
      return true;
    }
    return false;
  }

  // The last number, or what is computed from it, is stored there after the loop, and nothing sees what is in
  // memory meanwhile.
  bool IsStoredAfter(const PHINode& phi, const Instruction& next, const LoopAccess& first,
                     const LoopNest& nest) {
    const Loop& inner = *nest.back();
    const Statement* last = nullptr;
    for (const Statement& statement : found_.statements)
      if (statement.nest == first.nest && IsSame(statement, first) &&
          OrderOf(*statement.at) > OrderOf(phi) &&
          (last == nullptr || OrderOf(*statement.at) < OrderOf(*last->at)))
        last = &statement;
    if (last == nullptr || !domains_.Of(*inner.getLoopPreheader())
                                .is_subset(domains_.Of(*last->at->getParent()))
                                .is_true())
      return false;
    SetVector<const PHINode*> after;
    if (!FindAfter(phi, next, first.nest, after)) return false;
    found_.in_memory[&phi] = last->place;
    for (const PHINode* number : after) found_.in_memory[number] = last->place;
    found_.untouched.push_back({{&first, false, first.nest, OrderOf(*first.instruction)},
                                {last->place, true, last->nest, OrderOf(*last->at)},
                                domains_.Of(*last->at->getParent()),
                                {last->place},
                                true});
    found_.statements.push_back({const_cast<Instruction*>(&next), last->place, &next, nest, {}, {}});
    return true;
  }

  const LoopInfo& loops_;
  const LoopAccesses& accesses_;
  ExactNumbers& numbers_;
  BlockDomains& domains_;
  NestStatements& found_;
  DenseSet<const Instruction*> not_needed_;
};

}  // namespace

std::string FindStatements(const LoopInfo& loops, const LoopAccesses& accesses, ExactNumbers& numbers,
                           IterationSpace& space, NestStatements& found) {
  const Loop& loop = numbers.loop();
  unsigned order = 0;
  for (BasicBlock* block : ReversePostOrderTraversal<Function*>(loop.getHeader()->getParent()))
    for (Instruction& instruction : *block) found.order[&instruction] = ++order;
  if (!accesses.own.empty()) return "a local array is used";
  for (const LoopAccess& access : accesses.accesses)
    if (access.written)
      found.statements.push_back({cast<StoreInst>(access.instruction)->getValueOperand(), &access,
                                  access.instruction, access.nest, {}, {}});
  constexpr size_t kMostStatements = 8;
  if (found.statements.size() > kMostStatements) return "it has too many statements";
  BlockDomains domains(loops, numbers, space, found);
  if (std::string why = domains.Find(loop, {}); !why.empty()) return why;
  found.assumed = domains.assumed();
  DenseSet<const Instruction*> used = NumbersInMemory(loops, accesses, numbers, domains, found).Find();
  // What is in memory need not be stored there again.
  erase_if(found.statements, [&](const Statement& statement) {
    auto* number = dyn_cast<PHINode>(statement.value);
    return number != nullptr && found.in_memory.lookup(number) == statement.place;
  });
  for (Statement& statement : found.statements) {
    statement.domain = domains.Of(*statement.at->getParent());
    if (statement.domain.is_null()) return "it is not known when a statement runs";
    Slice slice(statement, accesses, numbers, found);
    Value* address = getLoadStorePointerOperand(statement.place->instruction);
    for (Value* value : {statement.value, address})
      if (std::string why = slice.Add(value); !why.empty()) return why;
    used.insert(slice.seen().begin(), slice.seen().end());
    statement.accesses.push_back({statement.place, true, statement.nest, found.order.lookup(statement.at)});
  }
  for (const LoopAccess& access : accesses.accesses)
    if (!access.written && !used.contains(access.instruction))
      return "it reads what no statement uses" + LineOf(*access.instruction);
  return "";
}

}  // namespace fusion
