// Another order for the statements of a nest: one counter of each is the time, and what runs at one time
// falls into phases, one for each statement, whose iterations are independent. Every element gets the
// operations of the program in their order.
#pragma once

#include <string>
#include <vector>

#include "compiler/partition/statements.h"

namespace fusion {

// Another order is of use for statements in so many loops.
constexpr size_t kDeep = 3;

struct Phase {
  const Statement* statement;
  unsigned counter;  // of the statement's nest: the one that the time takes the place of
  isl::pw_aff time;  // of the statement's counters
};

struct Reordering {
  std::string why_not;  // why there is none
  std::vector<Phase> phases;
  isl::set times;    // all of them, more where some between are left out
  isl::set assumed;  // of parameters: where the order is right and has something to do
};

// All accesses of an array lie within it, whichever iterations run. Arrays are taken to share no memory.
Reordering FindReordering(const NestStatements& nest, const LoopAccesses& accesses, ExactNumbers& numbers,
                          IterationSpace& space);

}  // namespace fusion
