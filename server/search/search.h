// The state space of a graph: its fusible sets and their implementations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/graph/graph.h"
#include "server/model/cost_model.h"
#include "server/plan/plan.h"
#include "server/search/implementation_choice.h"

namespace fusion {

struct SearchOptions {
  int max_fusion_nodes = 16;
  int64_t max_fusions = 4000;  // fusible sets that are implemented
  // Where a limit leaves sets out, larger ones that grow greedily are added, of at most so many nodes.
  int max_grown_nodes = 64;
  // These sets, with all that lies between their nodes, are listed too, whatever the limits.
  std::vector<NodeSet> together;
  ImplementationOptions implementation;
};

// The result of a search. Every node has at least its single-node fusion.
struct SearchSpace {
  int64_t fusible_sets = 0;              // convex, connected, within the limits
  bool complete = true;                  // no limit left out any of them
  std::vector<int64_t> fusions_by_size;  // [k]: feasible fusions of k nodes
  // Implementations of feasible fusions, grouped by fusion, best predicted first.
  std::vector<FusionImplementation> implementations;
  std::vector<int> unfused;        // for each node: position of the best single-node implementation
  std::vector<std::string> notes;  // limits that were applied
};

// The largest SearchOptions::max_fusions that is offered: implementations take about 4 KB each.
inline constexpr int64_t kMostFusions = 200'000;
// The largest graph that is searched has so many nodes.
inline constexpr int kMaxSearchedNodes = 10000;

// InvalidArgument: the graph is too large, or a node fits no skeleton on this device (the message names
// node, limit and the device's value).
absl::StatusOr<SearchSpace> SearchFusions(const Graph& graph, const SizeValues& sizes, const CostModel& model,
                                          const SearchOptions& options);

}  // namespace fusion
