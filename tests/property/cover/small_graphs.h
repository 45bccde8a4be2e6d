// Small random and exhaustive DAGs with columns, and a check of covers that shares no code with the solvers.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "server/cover/cover_solver.h"

namespace fusion::testing {

using Mask = uint32_t;

// Returns whether no path leaves the set and comes back, by following every path.
inline bool IsConvex(const std::vector<std::vector<int>>& successors, Mask set) {
  const int count = static_cast<int>(successors.size());
  Mask left = 0;  // reached from the set along a path that has left it
  for (int round = 0; round <= count; ++round)
    for (int node = 0; node < count; ++node)
      if ((set | left) >> node & 1)
        for (int next : successors[node])
          if (!(set >> next & 1)) left |= Mask{1} << next;
  for (int node = 0; node < count; ++node)
    if (left >> node & 1)
      for (int next : successors[node])
        if (set >> next & 1) return false;
  return true;
}

inline NodeSet SetOf(Mask mask) {
  NodeSet set;
  for (int node = 31; node >= 0; --node)
    if (mask >> node & 1) set.Add(node);
  return set;
}

// The DAG whose edges i -> j, i < j, are the bits of `edges` in the order (0,1), (0,2), (1,2), (0,3), ...
inline std::vector<std::vector<int>> DagOf(int count, uint64_t edges) {
  std::vector<std::vector<int>> successors(count);
  for (int to = 1; to < count; ++to)
    for (int from = 0; from < to; ++from, edges >>= 1)
      if (edges & 1) successors[from].push_back(to);
  return successors;
}

// Every convex set (each with probability `keep`; single nodes always) with 1 to max_columns columns. Larger
// sets tend to cost less than their parts.
inline CoverProblem ConvexProblem(std::vector<std::vector<int>> successors, double keep, int max_columns,
                                  std::mt19937& random) {
  CoverProblem problem;
  problem.node_count = static_cast<int>(successors.size());
  std::uniform_real_distribution<double> unit(0, 1);
  for (Mask mask = 1; mask < Mask{1} << problem.node_count; ++mask) {
    const int size = __builtin_popcount(mask);
    if (!IsConvex(successors, mask) || (size > 1 && unit(random) >= keep)) continue;
    const int columns = std::uniform_int_distribution<int>(1, max_columns)(random);
    for (int i = 0; i < columns; ++i)
      problem.columns.push_back({SetOf(mask), 1e-5 * (0.5 + 0.5 * size + unit(random) * size)});
  }
  problem.successors = std::move(successors);
  return problem;
}

// "" when the columns cover each node once, in an order that respects every edge, and take as long as is
// claimed.
inline std::string Fault(const CoverProblem& problem, const CoverSolution& cover) {
  std::vector<int> step_of(problem.node_count, -1);
  double seconds = 0;
  for (size_t step = 0; step < cover.columns.size(); ++step) {
    const int column = cover.columns[step];
    if (column < 0 || column >= static_cast<int>(problem.columns.size())) return "no such column";
    seconds += problem.columns[column].seconds;
    for (int node : problem.columns[column].nodes.Members()) {
      if (step_of[node] >= 0) return "node " + std::to_string(node) + " twice";
      step_of[node] = static_cast<int>(step);
    }
  }
  for (int node = 0; node < problem.node_count; ++node) {
    if (step_of[node] < 0) return "node " + std::to_string(node) + " missing";
    for (int next : problem.successors[node])
      if (step_of[next] < step_of[node])
        return "node " + std::to_string(next) + " runs before node " + std::to_string(node);
  }
  if (std::abs(seconds - cover.seconds) > 1e-12 * seconds) return "wrong time";
  return "";
}

}  // namespace fusion::testing
