// A CoverProblem reduced to distinct node sets. Columns with equal nodes are interchangeable, so the 0/1
// program needs the cheapest of them alone.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/cover/cover_solver.h"
#include "server/linear/partition_program.h"

namespace fusion {

// A share of a set above this is all of it.
inline constexpr double kWhole = 1 - 1e-6;

struct SetProblem {
  struct Set {
    NodeSet nodes;
    std::vector<int> members;  // of nodes, ascending
    std::vector<int> columns;  // of the CoverProblem, by seconds, then by number
    double seconds = 0;        // of columns[0]
  };
  int node_count = 0;
  std::vector<std::vector<int>> successors;
  std::vector<Set> sets;                  // distinct and convex, by members in lexicographic order
  std::vector<std::vector<int>> sets_of;  // per node: sets with that node, ascending
  // Descendants per node; empty above kMaxReachabilityNodes, where they would take too much memory.
  std::vector<NodeSet> descendants;
  std::vector<NodeSet> ancestors;  // per node: those that it descends from; likewise
  std::vector<std::string> notes;
  AnswerFilter filter;  // of lp_solve's answers about this problem and parts of it

  int Find(const std::vector<int>& members) const;       // the set with these members (ascending), or -1
  double Seconds(const std::vector<int>& chosen) const;  // sum in ascending order of sets
  // Returns whether some node of `to` descends from one of `from`, and some node of `from` from one of `to`:
  // such disjoint sets wait for each other. False when the descendants are not known.
  bool WaitForEachOther(const Set& from, const Set& to) const;
  bool IsExactCover(const std::vector<int>& chosen) const;  // each node in exactly one
};

// Checks the problem (errors: SolveCovers) and leaves out sets that are not convex: no schedule can hold one,
// as the sets of the nodes on the path that leaves and comes back would wait for it and it for them.
absl::StatusOr<SetProblem> MakeSetProblem(const CoverProblem& problem);

}  // namespace fusion
