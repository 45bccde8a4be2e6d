// A kernel over vectors or rows computes its nodes in the order that keeps least in registers at once,
// whatever the order of statements in the source.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/graph/graph.h"
#include "server/skeletons/shared/loop_roles.h"

namespace fusion {

struct MemberOrder {
  std::vector<int> positions;  // in `members`, producers before consumers
  // Values of one entry that are live at once in the phase that holds most, without accumulators; no order
  // has fewer than `lower_bound`.
  int64_t live = 0, lower_bound = 0;
  bool proved_optimal = true;  // no order has fewer
};

// Orders are searched within so many steps (LinearizeOptions), which proves all of up to about ten nodes: the
// search asks for every set of nodes.
inline constexpr int64_t kMemberOrderSteps = 1000;

// Orders the nodes of a loop over vectors or rows; where `roles` has no phases they keep their ascending
// order. Nodes change places only within their phase, between two reductions that one waits for; a reduction
// adds up the same terms in the same order. `members` stay in ascending order where no other keeps less.
MemberOrder OrderMembers(const Graph& graph, const std::vector<int>& members, const LoopRoles& roles,
                         int64_t max_steps = kMemberOrderSteps);

}  // namespace fusion
