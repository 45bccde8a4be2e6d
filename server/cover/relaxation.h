// The relaxed program of a whole problem: sets may be taken in part. Its value is a bound, its dual values
// are what the nodes are worth. Internal to server/cover.
#pragma once

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "server/cover/deadline.h"
#include "server/cover/linear_program.h"
#include "server/cover/schedule.h"
#include "server/cover/set_problem.h"

namespace fusion {

// Sets enter the program as they are needed (column generation), cuts as they come. Not thread safe.
class Relaxation {
 public:
  // `problem` must outlive this. Costs in the program are seconds * scale. `reduced_costs` of sets, seconds,
  // when there are any near those of the solution: they say with which sets to begin.
  Relaxation(const SetProblem& problem, double scale, const std::vector<double>& reduced_costs = {});

  // Solves the program of all sets but those that are `out`, with `cuts`, among which are those of all calls
  // before. False when there was no answer in time; what follows is then of the last call that had one, if
  // any.
  bool Solve(const std::set<Cut>& cuts, const std::vector<char>& out, Deadline deadline);

  // Goes on with a program of the sets of least reduced cost in the last solution, at most so many for each
  // node; the others come again as they are needed. Requires a solution.
  void Shrink(size_t sets_per_node);

  // Where the next Solve goes on from: a LastBasis since the last Shrink, or empty for the last solution.
  LinearProgram::Basis LastBasis() const { return program_->LastBasis(); }
  void GoOnFrom(LinearProgram::Basis basis) { next_basis_ = std::move(basis); }

  double seconds() const { return seconds_; }  // no cover is faster
  bool feasible() const { return feasible_; }  // false: no sets that are left make a cover

  struct Prices {
    std::vector<double> nodes;                        // seconds
    std::vector<std::pair<const Cut*, double>> cuts;  // seconds, <= 0
  };
  const Prices& prices() const { return prices_; }
  // Per set, seconds: what it costs more than its nodes and cuts are worth (its reduced cost), at least 0 but
  // for rounding.
  const std::vector<double>& reduced_costs() const { return reduced_costs_; }
  // The sets that are taken, each with how much of it, ascending.
  const std::vector<std::pair<int, double>>& shares() const { return shares_; }

 private:
  void AddSet(int set);
  void AddCuts(const std::set<Cut>& cuts);
  bool SolveProgram(const std::vector<char>& out, Deadline deadline);
  bool IsConsistent() const;
  // Adds sets that would lower the value at these prices, those that lower it most first; false when there is
  // none. *missing: by how much all nodes together cost too much for some set, per node of it.
  bool AddSets(const Prices& prices, const std::vector<char>& out, double* missing);

  const SetProblem& problem_;
  const double scale_;
  std::unique_ptr<LinearProgram> program_;
  std::vector<char> present_, closed_;  // per set
  std::vector<int>
      variables_;  // sets in order of adding, behind a variable for each node that leaves it uncovered
  std::vector<const Cut*> cuts_;           // in order of adding
  std::set<Cut> known_;                    // what cuts_ points to
  std::vector<std::vector<int>> cuts_of_;  // per set: positions in cuts_
  double uncovered_cost_ = 0;
  Prices prices_;
  std::vector<double> reduced_costs_;
  double seconds_ = 0, objective_ = 0;
  LinearProgram::Basis next_basis_;
  bool feasible_ = true;
  std::vector<std::pair<int, double>> shares_;
};

// Cuts that the shares break, against two sets that wait for each other: with edges u1 -> v2 and u2 -> v1 at
// most one set of a schedulable cover holds u1 and v1 without u2 and v2, or u2 and v2 without u1 and v1.
std::vector<Cut> WaitingPairCuts(const SetProblem& problem,
                                 const std::vector<std::pair<int, double>>& shares);

}  // namespace fusion
