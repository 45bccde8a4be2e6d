// All covers of a small problem, by brute force.
#pragma once

#include <vector>

#include "server/cover/cover_solver.h"
#include "server/cover/partition.h"
#include "server/cover/set_problem.h"

namespace fusion::testing {

inline Deadline Soon() { return DeadlineAfter(std::chrono::seconds(20)); }

// Returns every cover: its sets in schedule order.
inline std::vector<Partition> AllPartitions(const CoverProblem& problem, const SetProblem& sets) {
  std::vector<Partition> partitions;
  const CoverResult listed = BruteForceCovers(problem, {.count = 1'000'000}).value();
  for (const CoverSolution& cover : listed.covers) {
    partitions.push_back({{}, cover.seconds});
    for (int column : cover.columns)
      partitions.back().sets.push_back(sets.Find(problem.columns[column].nodes.Members()));
  }
  return partitions;
}

}  // namespace fusion::testing
