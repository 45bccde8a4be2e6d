// Better partitions near one that is known (large neighbourhood search: P. Shaw, 1998): the sets of a
// connected window are replaced by the fastest that can stand there, as a small problem of its own, window
// after window over the whole graph. Internal to server/cover.
#pragma once

#include <functional>
#include <vector>

#include "server/cover/branch_and_cut.h"
#include "server/cover/window.h"

namespace fusion {

// Above so many nodes covers are searched for near others. Windows are smaller.
inline constexpr int kLargeNodes = 150;

class NeighbourhoodSearch {
 public:
  // Sets that are `out` (per set) are not used. `problem` and `out` must outlive this.
  NeighbourhoodSearch(const SetProblem& problem, const std::vector<char>& out, Deadline deadline);

  // Improves `start` until no window of up to `window_nodes` nodes (or of one set that is larger) has
  // anything better, or time runs out. `start` is schedulable and without the sets that are out.
  Partition Improve(Partition start, int window_nodes);

  // Returns positions in partition.sets: the set of `centre` and those nearest to it along edges, as long as
  // there is room.
  std::vector<int> Grow(const Partition& partition, int centre, int window_nodes) const;

  // Returns what the nodes are worth in the windows that they were last in the middle of, seconds; 0 for
  // others. These prices give no bound.
  const std::vector<double>& prices() const { return prices_; }

 private:
  BranchAndCut::Answer Solve(const Window& window) const;

  const SetProblem& problem_;
  const std::vector<char>& out_;
  const Deadline deadline_;
  std::vector<double> prices_;
  std::vector<std::vector<int>> neighbours_;  // per node, along edges in both directions
};

}  // namespace fusion
