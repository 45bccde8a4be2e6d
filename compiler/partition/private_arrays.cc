#include "compiler/partition/private_arrays.h"

#include <llvm/ADT/SmallPtrSet.h>

#include <algorithm>

#include "compiler/partition/ranges.h"

namespace fusion {

using namespace llvm;

namespace {

// The elements that an iteration of the outermost loop touches.
isl::map OfIteration(const isl::map& elements, const LoopNest& nest) {
  return isl::manage(
      isl_map_project_out(elements.copy(), isl_dim_in, 1, static_cast<unsigned>(nest.size() - 1)));
}

bool IsSubset(const isl::map& part, const isl::map& of, const isl::set& known) {
  return part.intersect_params(known).is_subset(of).is_true();
}

// Every iteration of the loop touches the same elements.
bool IsSameInAll(const isl::map& of_iteration, const isl::set& iterations, const isl::set& known) {
  const isl::map all =
      isl::manage(isl_map_from_domain_and_range(iterations.copy(), of_iteration.range().release()));
  return IsSubset(all, of_iteration, known);
}

// Returns true when a path leads from one block to the other within an iteration of `loop`.
bool Reaches(const BasicBlock* from, const BasicBlock* to, const Loop& loop) {
  SmallPtrSet<const BasicBlock*, 16> seen;
  SmallVector<const BasicBlock*, 16> left{from};
  while (!left.empty()) {
    const BasicBlock* block = left.pop_back_val();
    if (block == to) return true;
    for (const BasicBlock* next : successors(block))
      if (next != loop.getHeader() && loop.contains(next) && seen.insert(next).second) left.push_back(next);
  }
  return false;
}

// Returns true when, in an iteration of the innermost loop around both, all that the write does of it is done
// before the read. The write is made in every iteration of the loops around it.
bool IsDoneBefore(const LoopAccess& write, const LoopAccess& read, size_t common, const BlockOrder& order) {
  const BasicBlock *of_write = write.instruction->getParent(), *of_read = read.instruction->getParent();
  if (write.nest.size() == common) {
    if (of_write == of_read) return write.instruction->comesBefore(read.instruction);
    return order.dominators.dominates(of_write, of_read);
  }
  const Loop &inner = *write.nest[common], &around = *write.nest[common - 1];
  if (Reaches(of_read, inner.getHeader(), around)) return false;
  const BasicBlock* before = inner.getLoopPreheader();
  if (order.dominators.dominates(before, of_read)) return true;
  // Where a condition skips the loop, that is the one by which it has no iterations.
  const BranchInst* guard = inner.getLoopGuardBranch();
  return guard != nullptr && !order.dominators.dominates(before, around.getLoopLatch()) &&
         order.loops.getLoopFor(guard->getParent()) == &around &&
         order.dominators.dominates(guard->getParent(), of_read);
}

// The elements that a write has written before the read, for each iteration of the read's loops.
isl::map WrittenBefore(const LoopAccess& write, const isl::map& written, const LoopAccess& read,
                       const BlockOrder& order) {
  size_t common = 1;
  while (common < std::min(write.nest.size(), read.nest.size()) && write.nest[common] == read.nest[common])
    ++common;
  // Iterations of the read's loops to those of the write's: in an earlier iteration of a common loop inside,
  // or in the same of all.
  isl_map* same =
      isl_map_universe(isl_space_alloc(written.ctx().get(), 0, static_cast<unsigned>(read.nest.size()),
                                       static_cast<unsigned>(write.nest.size())));
  isl_map* before = isl_map_empty(isl_map_get_space(same));
  for (unsigned at = 0; at < common; ++at) {
    if (at > 0)
      before = isl_map_union(before, isl_map_order_gt(isl_map_copy(same), isl_dim_in, static_cast<int>(at),
                                                      isl_dim_out, static_cast<int>(at)));
    same = isl_map_equate(same, isl_dim_in, static_cast<int>(at), isl_dim_out, static_cast<int>(at));
  }
  if (IsDoneBefore(write, read, common, order))
    before = isl_map_union(before, same);
  else
    isl_map_free(same);
  return isl::manage(before).apply_range(written);
}

}  // namespace

PrivateArray FindPrivate(const TouchedElements& touched, const isl::set& known, ExactNumbers& numbers,
                         IterationSpace& space, const BlockOrder& order) {
  isl::set assumed = isl::manage(isl_set_universe(isl_space_params_alloc(space.context().get(), 0)));
  const LoopNest none;
  const isl::set iterations = space.Domain(LoopNest{&numbers.loop()});
  std::set<const LoopAccess*> fills;
  isl::map filled;
  for (const auto& [access, elements] : touched) {
    SmallVector<const SCEV*, 2> repeats;
    if (!access->written || !space.IsExact(access->nest) ||
        !TouchesAll(*access, order.dominators, numbers, &repeats))
      continue;
    // A loop inside that writes the same bytes again and again has one iteration at least.
    isl::set all_assumed = assumed;
    for (const SCEV* last : repeats) {
      const isl::pw_aff most = numbers.evolution().isLoopInvariant(last, &numbers.loop())
                                   ? space.Affine(last, none)
                                   : isl::pw_aff();
      all_assumed = most.is_null()
                        ? isl::set()
                        : all_assumed.intersect_params(most.ge_set(space.Constant(0, none)).params());
      if (all_assumed.is_null()) break;
    }
    const isl::map of_iteration = OfIteration(elements, access->nest);
    // No need to assume anything for what other writes do.
    if (!repeats.empty() && !filled.is_null() &&
        IsSubset(of_iteration, filled, known.intersect_params(assumed)))
      continue;
    if (all_assumed.is_null() || !IsSameInAll(of_iteration, iterations, known.intersect_params(all_assumed)))
      continue;
    assumed = all_assumed;
    fills.insert(access);
    filled = filled.is_null() ? of_iteration : filled.unite(of_iteration);
  }
  if (fills.empty()) return {};
  const isl::set all_known = known.intersect_params(assumed);
  for (const auto& [access, elements] : touched) {
    if (fills.count(access) > 0) continue;
    if (access->written) {
      if (!IsSubset(OfIteration(elements, access->nest), filled, all_known)) return {};
      continue;
    }
    isl::map before;
    for (const auto& [write, written] : touched) {
      if (fills.count(write) == 0) continue;
      const isl::map by_write = WrittenBefore(*write, written, *access, order);
      before = before.is_null() ? by_write : before.unite(by_write);
    }
    if (!IsSubset(elements, before, all_known)) return {};
  }
  return {std::move(fills), assumed};
}

}  // namespace fusion
