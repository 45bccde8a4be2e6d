// Finds which choices of sets can run, in which order, and cuts against those that cannot.
#pragma once

#include <optional>
#include <vector>

#include "server/cover/partition.h"
#include "server/cover/set_problem.h"

namespace fusion {

// Returns a topological order of the sets of an exact cover, of those that can run next the one with the
// smallest node; nothing when the sets wait for each other.
std::optional<std::vector<int>> ScheduleOrder(const SetProblem& problem, const std::vector<int>& chosen);

// Returns each node by itself, which is always schedulable; nothing when some node has no set of its own.
std::optional<Partition> SingleNodes(const SetProblem& problem);

// At most `limit` of `sets` are in any schedulable cover. A set that stands there twice counts twice.
struct Cut {
  std::vector<int> sets;  // ascending
  int limit = 0;
  friend auto operator<=>(const Cut&, const Cut&) = default;
};

// Returns cuts that every schedulable cover obeys and `chosen`, an exact cover that is not schedulable, does
// not; at least one.
//
// A cycle S1 .. Sk of sets, joined by edges u1 -> v2, u2 -> v3, .. uk -> v1 with ui and vi in Si, gives the
// cut "at most k - 1 of S1 .. Sk". It holds for more sets at once: let Gi be all sets that contain ui and vi
// and no other uj or vj. At most one set of Gi is in a cover (it contains ui), the Gi are disjoint, and one
// set from each would form the same cycle. So at most k - 1 are from G1 and .. and Gk. Cycles are shortest
// ones through each set.
std::vector<Cut> CycleCuts(const SetProblem& problem, const std::vector<int>& chosen);

// Returns a schedulable cover near `chosen`, an exact cover: as long as there is a cycle, the set of it that
// costs least to split is split in two (what its exit needs and the rest, or the rest and what needs its
// entry) or into single nodes. This is a heuristic, for an answer before the best one is known. Returns
// nothing when the problem lacks the sets to split into.
std::optional<Partition> SplitCycles(const SetProblem& problem, std::vector<int> chosen);

}  // namespace fusion
