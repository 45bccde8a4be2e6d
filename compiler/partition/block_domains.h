// For which counters of its loops a block runs, exactly.
#pragma once

#include <llvm/ADT/DenseMap.h>

#include <string>

#include "compiler/partition/accesses.h"

namespace fusion {

class BlockDomains {
 public:
  BlockDomains(const llvm::LoopInfo& loops, ExactNumbers& numbers, IterationSpace& space);

  // Looks at `loop` and all loops inside of it. entered: the counters of loops around, inside of
  // numbers.loop(), for which it is entered. Returns "", or why domains are not known.
  std::string Find(const llvm::Loop& loop, isl::set entered);
  // Null: the block is in no loop that was looked at.
  isl::set Of(const llvm::BasicBlock& block) const { return domains_.lookup(&block); }
  // The parameters for which that is right.
  const isl::set& assumed() const { return assumed_; }

 private:
  // Returns the counters for which `before` runs and is followed by `block`. Null: unknown.
  isl::set Along(const llvm::BasicBlock& before, const llvm::BasicBlock& block, const LoopNest& nest);

  const llvm::LoopInfo& loops_;
  ExactNumbers& numbers_;
  IterationSpace& space_;
  isl::set assumed_;
  llvm::DenseMap<const llvm::BasicBlock*, unsigned> order_;  // each comes after those before it
  llvm::DenseMap<const llvm::BasicBlock*, isl::set> domains_;
};

}  // namespace fusion
