// The relaxed program of a whole problem: sets may be taken in part. Its value is a bound, its dual values
// are what the nodes are worth. Internal to server/cover.
#pragma once

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "server/cover/schedule.h"
#include "server/cover/set_problem.h"
#include "server/linear/deadline.h"
#include "server/linear/partition_program.h"

namespace fusion {

// Sets enter the program as they are needed (column generation), cuts as they come. Not thread safe.
class Relaxation {
 public:
  // `problem` must outlive this. Costs in the program are seconds * scale. `reduced_costs` of sets, seconds,
  // when there are any near those of the solution: they say with which sets to begin.
  Relaxation(const SetProblem& problem, double scale, const std::vector<double>& reduced_costs = {});

  // Solves the program of all sets but those that are `out`, with `cuts`, among which are those of all calls
  // before. False when there was no answer in time, or none that holds; the results are then of the last
  // program that had one, if any, perhaps without some of the cuts.
  //
  // Each answer of lp_solve is checked by itself: its values are a solution, its prices prove a bound, and
  // the solution costs what they prove.
  bool Solve(const std::set<Cut>& cuts, const std::vector<char>& out, Deadline deadline);

  // Goes on with a program of the sets of least reduced cost in the last solution, at most so many for each
  // node; the others come again as they are needed. Requires a solution.
  void Shrink(size_t sets_per_node);

  // A solution is made of these parts, whatever the program holds later.
  struct Basis {
    // An entry is ~node for what the row of a node lacks, a node that stays uncovered, or node_count + set.
    std::vector<int> entries;
    std::vector<int> tight;  // cuts that the program held and that lack nothing
  };
  // The next Solve goes on from `basis`: a LastBasis, or empty for the last solution.
  Basis LastBasis() const;
  void GoOnFrom(Basis basis) { next_basis_ = std::move(basis); }

  double seconds() const { return last_.seconds; }  // no cover is faster
  bool feasible() const { return last_.feasible; }  // false: no sets that are left make a cover

  struct Prices {
    std::vector<double> nodes;                        // seconds
    std::vector<std::pair<const Cut*, double>> cuts;  // seconds, <= 0
  };
  const Prices& prices() const { return last_.prices; }
  // Returns per set the seconds that it costs more than its nodes and cuts are worth (its reduced cost), at
  // least 0 but for rounding.
  const std::vector<double>& reduced_costs() const { return last_.reduced_costs; }
  // Returns the sets that are taken, each with how much of it, ascending.
  const std::vector<std::pair<int, double>>& shares() const { return last_.shares; }
  // These calls return all cuts so far, and per set in which of them it stands, as often as it counts there.
  const std::vector<const Cut*>& cuts() const { return cuts_; }
  const std::vector<std::vector<int>>& cuts_of() const { return cuts_of_; }
  size_t cuts_in_program() const { return rows_.size(); }  // the others hold too, or they would come back

 private:
  struct Answer {
    double seconds = 0;
    bool feasible = true;
    Prices prices;
    std::vector<double> reduced_costs;
    std::vector<std::pair<int, double>> shares;
  };
  std::unique_ptr<LinearProgram> NewProgram() const;
  void AddSet(int set);
  void AddRow(int cut);
  void AddCuts(const std::set<Cut>& cuts);
  bool AddBrokenCuts();  // those not in the program; false when none is broken
  // Makes a new program of these sets and cuts alone.
  void Rebuild(const std::vector<int>& sets, const std::vector<int>& cuts);
  std::vector<int> PricedCuts() const;  // cuts in the program, but for those without a price for long
  // Makes the next solution go on from `basis`. Before that, cuts without a price for long and sets that are
  // out leave the program: programs of fewer rows are solved faster.
  void PrepareBasis(const Basis& basis, const std::vector<char>& out);
  enum class Outcome { kSolved, kWrong, kNone };
  // Puts the answer into last_ when the program is solved.
  Outcome SolveProgram(const std::vector<char>& out, Deadline deadline);
  // Returns whether the values, of all variables, are a solution that costs so much, without the sets that
  // are out.
  bool IsSolution(const std::vector<double>& values, const std::vector<char>& out, double seconds) const;
  // Adds sets that would lower the value at these prices, those that lower it most first; false when there is
  // none. *reduced_costs are those at these prices; *missing says by how much all nodes together cost too
  // much for some set, per node of it.
  bool AddSets(const Prices& prices, const std::vector<char>& out, std::vector<double>* reduced_costs,
               double* missing);

  const SetProblem& problem_;
  const double scale_;
  std::unique_ptr<LinearProgram> program_;
  std::vector<char> present_, closed_;  // per set
  // Sets in order of adding; their variables stand behind one for each node, which leaves it uncovered.
  std::vector<int> variables_;
  std::vector<int> variable_of_;           // per set that is present: its variable in the program
  std::vector<const Cut*> cuts_;           // in order of adding
  std::set<Cut> known_;                    // what cuts_ points to
  std::vector<std::vector<int>> cuts_of_;  // per set: positions in cuts_
  std::vector<int> rows_;      // cuts in the program, in order of their rows behind those of the nodes
  std::vector<int> row_of_;    // per cut: its position there, or -1
  std::vector<int> unpriced_;  // per cut: the last solutions in which it had no price
  double uncovered_cost_ = 0;
  Basis next_basis_;
  Answer last_;
};

}  // namespace fusion
