// Random graphs for measuring the search: in-degree at most two, and kernels that cost a launch and their
// memory traffic.
#pragma once

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "server/cover/cover_solver.h"
#include "server/search/fusible_sets.h"

namespace fusion::testing {

// Node i reads the results of one or two of the nodes before it, most of them near; or, one in twelve, inputs
// alone.
inline FusibleSetProblem RandomDag(int nodes, unsigned seed) {
  std::mt19937 random(seed);
  FusibleSetProblem dag;
  dag.successors.resize(nodes);
  for (int node = 1; node < nodes; ++node) {
    if (random() % 12 == 0) continue;
    std::set<int> operands;
    const int count = 1 + static_cast<int>(random() % 2);
    for (int k = 0; k < count; ++k) {
      const int reach = random() % 10 == 0 ? nodes : 12;
      operands.insert(node - 1 - static_cast<int>(random() % std::min(node, reach)));
    }
    for (int operand : operands) dag.successors[operand].push_back(node);
  }
  return dag;
}

// Every fusible set of up to `max_nodes` as a kernel: a launch, and a vector read for each value that comes
// from outside (one for a node without operands) and written for each that is needed outside.
inline CoverProblem TrafficProblem(const FusibleSetProblem& dag, const std::vector<NodeSet>& sets) {
  const double launch = 2.0, vector = 1.0;
  const int nodes = static_cast<int>(dag.successors.size());
  std::vector<std::vector<int>> predecessors(nodes);
  for (int node = 0; node < nodes; ++node)
    for (int next : dag.successors[node]) predecessors[next].push_back(node);
  CoverProblem problem{.node_count = nodes, .successors = dag.successors};
  for (const NodeSet& set : sets) {
    std::set<int> read;
    int written = 0, sources = 0;
    for (int member : set.Members()) {
      sources += predecessors[member].empty();
      for (int before : predecessors[member])
        if (!set.Contains(before)) read.insert(before);
      const auto& next = dag.successors[member];
      written +=
          next.empty() || std::any_of(next.begin(), next.end(), [&](int to) { return !set.Contains(to); });
    }
    problem.columns.push_back(
        {set, 1e-6 * (launch + vector * static_cast<double>(read.size() + sources + written))});
  }
  return problem;
}

}  // namespace fusion::testing
