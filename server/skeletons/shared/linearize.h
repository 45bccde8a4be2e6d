// Linearization: the order of the nodes of a fusion that keeps least on chip at once (Fousek 2010,
// section 4.3.4).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "server/graph/graph.h"
#include "server/graph/node_set.h"

namespace fusion {

// One on-chip variable of a fusion; it has a producer or a consumer. Nodes are numbers 0 .. node_count - 1.
struct FusionVariable {
  int64_t size = 0;   // any unit
  int producer = -1;  // node that computes it; -1: loaded, just before the first consumer
  std::vector<int> consumers;
  // A loaded variable is loaded before the first node, not just before the first consumer.
  bool from_start = false;
  bool to_end = false;  // stored after the last node, not as soon as it is computed
};

struct LinearizationProblem {
  int node_count = 0;
  std::vector<FusionVariable> variables;
};

// Positions at which a variable is active: first <= i <= last (Fousek 2010, section 4.3.3, sets A_i).
struct ActiveInterval {
  int first = 0;
  int last = 0;
  int64_t size = 0;
  friend bool operator==(const ActiveInterval&, const ActiveInterval&) = default;
};

struct Linearization {
  std::vector<int> order;       // nodes, producers before consumers
  int64_t active_size = 0;      // M_lb: the largest sum of sizes of the variables active at one position
  int64_t lower_bound = 0;      // no order has a smaller active_size than this
  bool proved_optimal = false;  // active_size is the smallest: it is lower_bound then
};

struct LinearizeOptions {
  int64_t max_steps = 1 << 20;  // nodes placed during the search, over all branches
};

// Up to this many nodes orders are searched. Above, the better one of the first topological order and a
// greedy one is taken, unproved unless it meets the bound.
inline constexpr int kMaxLinearizedNodes = 64;

// The order with the least M_lb; among equals the lexicographically first. Fousek 2010, Listing 4.4, with a
// bound (the best M_lb so far) and a memory of the sets of placed nodes that cannot be completed below it, so
// at most one visit per down-set and improvement. At the step limit, the best order so far, which is no worse
// than a greedy one (of the nodes that can be next, the one that leaves least active). Requires an acyclic
// problem with indices in range.
Linearization Linearize(const LinearizationProblem& problem, const LinearizeOptions& options = {});

// M_lb of one order. Requires each node exactly once.
int64_t ActiveSize(const LinearizationProblem& problem, const std::vector<int>& order);

// For each variable the positions at which it is active.
std::vector<ActiveInterval> ActiveIntervals(const LinearizationProblem& problem,
                                            const std::vector<int>& order);

// The problem of one fusion of a graph. Node i is the i-th member of `nodes`, ascending; variable i is
// values[i].
struct FusionVariables {
  LinearizationProblem problem;
  std::vector<NodeId> nodes;
  std::vector<ValueId> values;  // ascending: all that the fusion touches, without literals
};
// size_of gives the on-chip size of a value. `staged`: inputs are held from the start, and results that leave
// the fusion (graph outputs, or read outside) to the end, as when a tile is copied in and out as a whole.
FusionVariables FusionVariablesOf(const Graph& graph, const NodeSet& nodes,
                                  const std::function<int64_t(const Value&)>& size_of, bool staged);

}  // namespace fusion
