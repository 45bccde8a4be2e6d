// A part of a problem around which a schedulable partition stays as it is. Internal to server/cover.
#pragma once

#include <optional>
#include <vector>

#include "server/cover/partition.h"
#include "server/cover/schedule.h"
#include "server/cover/set_problem.h"

namespace fusion {

// A window is the nodes of some sets of a partition, and what may replace these sets: all sets of these
// nodes. Paths through the sets outside are edges of the window, and no set is in it that such a path leaves
// and comes back to. So what can be scheduled in the window can be scheduled with the rest, and nothing else
// can.
class Window {
 public:
  // `positions` are those of the sets in partition.sets, each once. Sets that are `out` (per set, empty:
  // none) are not in the window.
  Window(const SetProblem& problem, const Partition& partition, std::vector<int> positions,
         const std::vector<char>& out);

  const SetProblem& problem() const { return window_; }  // nodes numbered anew
  const Partition& inside() const { return inside_; }    // the sets that are replaced
  int NumberOf(int node) const;                          // `node` is one of the whole in the window
  int SetOf(int set) const { return sets_[set]; }        // the set of the whole, for one of the window
  // Returns the whole with `sets` of the window, a schedulable partition of it, in place of inside().
  Partition Replaced(const std::vector<int>& sets) const;
  // Returns the seconds that the sets around the window cost.
  double outside_seconds() const { return outside_seconds_; }
  // Returns what a cut of the whole says of the window; nothing when it says nothing there.
  std::optional<Cut> Inside(const Cut& cut) const;

 private:
  std::vector<NodeSet> ThroughOutside(const std::vector<int>& nodes, const std::vector<int>& number) const;

  const SetProblem& problem_;
  const Partition& partition_;
  std::vector<int> positions_;  // ascending
  std::vector<int> nodes_;      // ascending
  SetProblem window_;
  std::vector<int> sets_;  // sets of the whole problem, per set of the window, ascending
  Partition inside_;
  std::vector<int> outside_;  // sets, ascending
  double outside_seconds_ = 0;
};

}  // namespace fusion
