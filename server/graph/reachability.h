// Reachability and convexity of node sets of a graph.
#pragma once

#include <vector>

#include "server/graph/graph.h"
#include "server/graph/node_set.h"

namespace fusion {

// Knows which nodes can be reached from which by at least one edge: a node does not reach itself. Immutable
// after construction, so any thread may call. Memory: nodes^2 / 8 bytes, so for up to about 50,000 nodes;
// larger graphs must not build it.
class Reachability {
 public:
  explicit Reachability(const Graph& graph);
  explicit Reachability(const std::vector<std::vector<int>>& successors);  // nodes in topological order
  bool Reaches(int from, int to) const { return descendants_[from].Contains(to); }
  const NodeSet& descendants(int node) const { return descendants_[node]; }
  const NodeSet& ancestors(int node) const { return ancestors_[node]; }

  // Returns whether no path leaves the set and comes back (Fousek 2010, section 4.3.1).
  bool IsConvex(const NodeSet& nodes) const;

 private:
  std::vector<NodeSet> descendants_;
  std::vector<NodeSet> ancestors_;
};

}  // namespace fusion
