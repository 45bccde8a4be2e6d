#include "compiler/partition/numbers_in_memory.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>

namespace fusion {

using namespace llvm;

namespace {

class NumbersInMemory {
 public:
  NumbersInMemory(const LoopInfo& loops, const LoopAccesses& accesses, ExactNumbers& numbers,
                  const BlockDomains& domains, NestStatements& found)
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
          !IsOfCounters(access.offset, access.nest, numbers_) ||
          OrderOf(*access.instruction) > OrderOf(phi) ||
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
      found_.in_memory[&phi] = &first;
      found_.untouched.push_back({from, {&first, false, nest, OrderOf(phi)}, all, {place}, false});
      SetVector<const PHINode*> after;
      if (!FindAfter(phi, next, first.nest, after)) return true;
      for (const PHINode* number : after) {
        found_.in_memory[number] = &first;
        found_.untouched.push_back({from,
                                    {&first, false, first.nest, OrderOf(*number)},
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
      if (statement.nest == first.nest && IsSame(statement, first) && OrderOf(*statement.at) > OrderOf(phi) &&
          (last == nullptr || OrderOf(*statement.at) < OrderOf(*last->at)))
        last = &statement;
    if (last == nullptr ||
        !domains_.Of(*inner.getLoopPreheader()).is_subset(domains_.Of(*last->at->getParent())).is_true())
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
  const BlockDomains& domains_;
  NestStatements& found_;
  DenseSet<const Instruction*> not_needed_;
};

}  // namespace

DenseSet<const Instruction*> FindNumbersInMemory(const LoopInfo& loops, const LoopAccesses& accesses,
                                                 ExactNumbers& numbers, const BlockDomains& domains,
                                                 NestStatements& found) {
  return NumbersInMemory(loops, accesses, numbers, domains, found).Find();
}

}  // namespace fusion
