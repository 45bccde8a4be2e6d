// In which order a kernel over vectors or rows computes its nodes: the one that keeps least in registers at
// once, whatever the order of statements in the source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/graph/graph.h"
#include "server/search/skeleton_rules.h"

namespace fusion {

struct MemberOrder {
  std::vector<int> positions;  // in `members`, producers before consumers
  // Of the phase that holds most: values of one entry that are live at once, without accumulators, and what
  // no order has fewer of.
  int64_t live = 0, lower_bound = 0;
  bool proved_optimal = true;  // no order has fewer
};

// Orders are searched within so many steps (LinearizeOptions), which proves all of up to about ten nodes: the
// search asks for every set of nodes.
inline constexpr int64_t kMemberOrderSteps = 1000;

// For kVector and kRowPanel; others keep the order of `members`, ascending. Nodes change places only within
// their phase, between two reductions that one waits for; a reduction adds up the same terms in the same
// order. `members` stay in ascending order where no other keeps less.
MemberOrder OrderMembers(const Graph& graph, const std::vector<int>& members, const SkeletonAnswer& skeleton,
                         int64_t max_steps = kMemberOrderSteps);

// Of a kernel over vectors or rows, or the sweeps of one, whose order is the best that was found but not
// proved: "21 values of an entry are live at once, in the best order found; no order has fewer than 17". Else
// empty.
std::string UnprovedOrderText(const Graph& graph, const FusionImplementation& implementation);

}  // namespace fusion
