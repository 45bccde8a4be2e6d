#include "server/graph/reachability.h"

#include <utility>

namespace fusion {
namespace {

std::vector<std::vector<int>> SuccessorLists(const Graph& graph) {
  std::vector<std::vector<int>> successors(graph.nodes().size());
  for (const Node& node : graph.nodes())
    for (NodeId next : graph.successors(node.id)) successors[node.id.value].push_back(next.value);
  return successors;
}

}  // namespace

Reachability::Reachability(const Graph& graph) : Reachability(SuccessorLists(graph)) {}

// One union of bit vectors per edge and direction, in topological order: nodes * edges / 64 word operations.
Reachability::Reachability(const std::vector<std::vector<int>>& successors) {
  const int count = static_cast<int>(successors.size());
  descendants_.assign(count, NodeSet(count));
  ancestors_.assign(count, NodeSet(count));
  for (int node = count - 1; node >= 0; --node) {
    for (int next : successors[node]) {
      descendants_[node].Add(next);
      descendants_[node].UnionWith(descendants_[next]);
    }
  }
  for (int node = 0; node < count; ++node) {
    for (int next : successors[node]) {
      ancestors_[next].Add(node);
      ancestors_[next].UnionWith(ancestors_[node]);
    }
  }
}

// A node outside the set lies on a path that leaves it and comes back exactly when it descends from a member
// and another member descends from it.
bool Reachability::IsConvex(const NodeSet& nodes) const {
  NodeSet below, above;
  for (int node : nodes.Members()) {
    below.UnionWith(descendants_[node]);
    above.UnionWith(ancestors_[node]);
  }
  for (int node : below.Members())
    if (above.Contains(node) && !nodes.Contains(node)) return false;
  return true;
}

}  // namespace fusion
