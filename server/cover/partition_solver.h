// Finds the best choice of sets in a part of the space of covers: with some sets in it and others not.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/cover/branch_and_cut.h"
#include "server/cover/partition.h"
#include "server/cover/relaxation.h"
#include "server/cover/schedule.h"
#include "server/cover/set_problem.h"
#include "server/linear/partition_program.h"

namespace fusion {

// A part of the space of covers.
struct Branch {
  std::vector<int> forced;     // sets that are in the cover, disjoint
  std::vector<int> forbidden;  // sets that are not
};

// Solves branches of one problem. Cuts found for one branch hold for all and are kept. Not thread safe.
class PartitionSolver {
 public:
  // `problem` must outlive the solver.
  PartitionSolver(const SetProblem& problem, Deadline deadline);

  PartitionResult Solve(const Branch& branch);

  bool InTime() const { return std::chrono::steady_clock::now() < deadline_; }

  // From now on LowerBound knows all cuts found so far.
  void UpdatePrices();
  // Returns a bound: no cover of the branch is faster; infinity when the branch can be seen to hold none.
  // This is cheap: no program is solved.
  double LowerBound(const Branch& branch) const;
  // Returns the 0/1 program of the whole problem with the cuts so far.
  std::string Text() const;

  // Returns the schedulable covers met on the way, from solutions that were not, each once. They are for when
  // time runs out.
  std::vector<Partition> met() const;
  // Returns the fastest of the covers met; null when there is none.
  const Partition* best_met() const;

  // Returns the failures of lp_solve, each kind once, and what was done about them; for people.
  std::vector<std::string> notes() const;

 private:
  // The rest of a problem once a branch has decided some sets.
  struct Rest {
    std::vector<int> chosen;      // decided to be in the cover
    std::vector<int> candidates;  // undecided, disjoint from the chosen, ascending
    std::vector<int> rows;        // nodes that no chosen set covers, ascending
    bool feasible = true;
  };
  Rest Reduce(const Branch& branch) const;
  std::unique_ptr<LinearProgram> Program(const Rest& rest) const;
  // Adds a cut as it stands once a branch has decided some sets; false when it cannot be kept.
  static bool AddCut(const Cut& cut, const Rest& rest, LinearProgram& program);
  // Handles a wrong answer of lp_solve. `result` is what there is without the answer; other means make it
  // better if they can.
  PartitionResult Repair(const Rest& rest, PartitionResult result, const std::string& reason);
  void Note(const std::string& text);

  // Finds a first partition, by larger and larger windows.
  void Start();
  void Meet(std::optional<Partition> partition);

  void SetPrices();
  // Returns what every partition of `rest` costs at least, in seconds: the prices of all nodes and the excess
  // of the chosen.
  double PricedSeconds(const Rest& rest) const;

  const SetProblem& problem_;
  const Deadline deadline_;
  double scale_;  // costs in the program are seconds * scale_
  Relaxation relaxation_;
  double root_bound_ = 0;  // seconds; no cover at all is faster
  // A cover costs at least price_of_all_ plus the excess of its sets, from prices of nodes and cuts
  // (SetPrices).
  double price_of_all_ = 0;
  std::vector<double> excess_;  // per set, >= 0, seconds
  std::optional<Partition> start_;
  std::vector<double> window_prices_;  // of nodes, seconds, not a bound; with start_
  std::set<Cut> cuts_;
  size_t priced_cuts_ = 0;                     // cuts that the prices know
  std::map<std::vector<int>, Partition> met_;  // by sets, ascending
  bool too_many_down_sets_ = false;
  std::vector<std::pair<std::string, int>> notes_;  // each with how often it came
};

}  // namespace fusion
