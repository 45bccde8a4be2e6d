#include "compiler/partition/statements.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>

#include "compiler/partition/block_domains.h"
#include "compiler/partition/numbers_in_memory.h"

namespace fusion {

using namespace llvm;

namespace {

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
               !isa<SelectInst>(instruction) && !isa<CmpInst>(instruction) && !isa<FreezeInst>(instruction) &&
               !isa<IntrinsicInst>(instruction)) {
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

std::string FindStatements(const LoopInfo& loops, const LoopAccesses& accesses, ExactNumbers& numbers,
                           IterationSpace& space, NestStatements& found) {
  const Loop& loop = numbers.loop();
  unsigned order = 0;
  for (BasicBlock* block : ReversePostOrderTraversal<Function*>(loop.getHeader()->getParent()))
    for (Instruction& instruction : *block) found.order[&instruction] = ++order;
  if (!accesses.own.empty()) return "a local array is used";
  for (const LoopAccess& access : accesses.accesses)
    if (access.written)
      found.statements.push_back({cast<StoreInst>(access.instruction)->getValueOperand(),
                                  &access,
                                  access.instruction,
                                  access.nest,
                                  {},
                                  {}});
  constexpr size_t kMostStatements = 8;
  if (found.statements.size() > kMostStatements) return "it has too many statements";
  BlockDomains domains(loops, numbers, space);
  if (std::string why = domains.Find(loop, {}); !why.empty()) return why;
  found.assumed = domains.assumed();
  DenseSet<const Instruction*> used = FindNumbersInMemory(loops, accesses, numbers, domains, found);
  // A number that is in memory need not be stored there again.
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
