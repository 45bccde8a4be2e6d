// The statements of a nest whose iterations may run in another order: each is a store with everything that is
// computed for it, and runs exactly for the counters of its domain.
#pragma once

#include <llvm/ADT/DenseMap.h>

#include <string>
#include <vector>

#include "compiler/partition/accesses.h"

namespace fusion {

// An element that one run of a statement reads or writes, and when the program as written does that.
struct StatementAccess {
  const LoopAccess* place;  // the element: that of this load or store
  bool written;
  LoopNest nest;   // loops whose counters say when; the statement's or some of the outer ones
  unsigned order;  // in the body of the last loop of `nest`: later instructions have larger numbers
};

struct Statement {
  llvm::Value* value;       // what is stored
  const LoopAccess* place;  // and where: that of this store
  // Where the program computes it. A sum that is in a register until it is stored is a statement in the loop
  // that sums it up.
  const llvm::Instruction* at;
  LoopNest nest;
  isl::set domain;  // exactly the counters for which it runs
  std::vector<StatementAccess> accesses;
};

// Between two accesses nothing but `except` may write an element, or touch it where `or_read`.
struct Untouched {
  StatementAccess from, to;  // the nest of `from` is that of `to`, or its outer loops
  isl::set domain;           // of the counters of `to`
  llvm::SmallVector<const LoopAccess*, 2> except;
  bool or_read;
};

struct NestStatements {
  std::vector<Statement> statements;
  // These have to hold for `in_memory`: the element is that of `to`.
  std::vector<Untouched> untouched;
  // Numbers that go from iteration to iteration and are, whenever they are used, also in memory: at the
  // element of this access.
  llvm::DenseMap<const llvm::PHINode*, const LoopAccess*> in_memory;
  llvm::DenseMap<const llvm::Instruction*, unsigned> order;
  isl::set assumed;  // of parameters: where the domains are exact
};

// Returns true when the number is made of counters of `nest` and of what is known before the loop.
bool IsOfCounters(const llvm::SCEV* number, const LoopNest& nest, ExactNumbers& numbers);
// Returns the value as a function of counters of `nest` and of what is known before the loop, or null.
const llvm::SCEV* NumberOfCounters(llvm::Value* value, const LoopNest& nest, ExactNumbers& numbers);

// Returns which loops two nests have in common.
size_t CommonLoops(const LoopNest& one, const LoopNest& other);

// Returns the pairs of counters of two accesses of which the program as written makes the first one earlier.
isl::map Earlier(const StatementAccess& first, const StatementAccess& second, const NestStatements& nest,
                 IterationSpace& space);

// Returns "", or why numbers.loop() does not consist of such statements alone.
std::string FindStatements(const llvm::LoopInfo& loops, const LoopAccesses& accesses, ExactNumbers& numbers,
                           IterationSpace& space, NestStatements& found);

}  // namespace fusion
