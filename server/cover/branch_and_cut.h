// Finds the fastest schedulable partition by branch and bound on the relaxed program. Internal to
// server/cover.
//
// A solution that takes sets in part has two nodes that it puts into one set in part: they are together in
// one branch and apart in the other (D. M. Ryan, B. A. Foster, 1981), which leaves sets out and adds nothing
// to the program. Cuts found anywhere hold everywhere.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "server/cover/partition.h"
#include "server/cover/relaxation.h"

namespace fusion {

// A search looks for partitions within these limits, seconds.
struct SearchLimits {
  double floor = 0;  // it is known that nothing is faster
  // Nothing that is no faster than the cutoff is looked for, and the bound is at most the cutoff.
  double cutoff = std::numeric_limits<double>::infinity();
};

class BranchAndCut {
 public:
  // All arguments must outlive this. `cuts` grows. `meet` is told of schedulable partitions on the way.
  BranchAndCut(const SetProblem& problem, Relaxation& relaxation, std::set<Cut>& cuts, Deadline deadline,
               std::function<void(Partition)> meet);

  struct Answer {
    PartitionResult result;
    double bound = 0;  // seconds; no partition is faster. Infinity: there is none
    // Prices of the nodes, seconds, from the first relaxed program and its cuts; empty if it was not solved.
    std::vector<double> root_prices;
    // The failure says what was wrong with an answer of lp_solve, if anything; the result holds all the same.
    std::string failure;
  };
  // Returns the fastest partition without the sets that are `out` (per set). `start`, when given, is such a
  // partition; it is the answer if none is faster. `search_near`: relaxed solutions are rounded and better
  // partitions are looked for near these, for large problems.
  Answer Solve(const std::vector<char>& out, const Partition* start = nullptr, bool search_near = false,
               SearchLimits limits = {});

 private:
  struct Open {
    double bound = 0;       // seconds
    std::vector<char> out;  // per set
    Relaxation::Basis basis;
  };
  enum class Step { kBranch, kDone, kFailed };
  struct Root {  // the solution of the first relaxed program
    double seconds = 0;
    std::vector<double> reduced_costs;
    std::vector<Cut> cuts;  // with a price
  };

  // Solves the first program with its cuts and, when asked for, looks for partitions near its solution.
  // Leaves sets out that are in nothing better.
  Step SolveRoot(std::vector<char>* out, bool search_near);
  void KeepRoot();
  // Solves the relaxed program without the sets that are `out`, with cuts that it turns out to need; further
  // sets become out. kBranch: sets are taken in part; kDone: nothing better is here, or the best was found.
  Step SolveRelaxed(std::vector<char>* out, int cut_rounds, bool until_small = false);
  bool Separate(const std::vector<char>& out);  // adds cuts that the relaxed solution breaks
  // Looks for something faster than a first cutoff that is little more than the bound, than a later one, and
  // so on: few sets have so little reduced cost. Returns the least bound of what had no answer.
  double SolveByCutoffs(Open root);
  // Solves what is left around the sets that are decided, as a problem of its own. Returns the least bound of
  // what had no answer.
  double SolveCore(std::vector<char> out, double floor);
  // Solves the rest, from `first` on. Returns the least bound of what had no answer.
  double SolveTree(Open first);
  // Returns the two halves of a part whose relaxed program has just been solved, the more promising one last;
  // none when the solution takes no set in part, as where the program with the last cuts failed.
  std::vector<Open> Halves(const Open& at) const;
  // Leaves out sets whose reduced costs say that they are in nothing better than the best.
  void LeaveOut(double seconds, const std::vector<double>& reduced_costs, std::vector<char>* out) const;
  bool IsSmall(const std::vector<char>& out) const;  // much smaller than the problem
  // Returns sets of little reduced cost, the least first.
  std::vector<int> NearSets(const std::vector<char>& out) const;
  // Finds first solutions of large problems: takes what is nearly taken and solves again, until all is taken
  // as a whole; and again, with the cuts that were needed, as long as that helps.
  void Dive(const std::vector<char>& from);
  // Rounds relaxed solutions to partitions, and looks for better ones near these. False when that is not
  // possible.
  bool Round(const std::vector<char>& out);
  // Returns the relaxed solution, a little changed, rounded: sets of the largest shares.
  std::optional<Partition> Rounded(std::mt19937& random) const;
  void Take(int set, std::vector<char>* out) const;
  // Returns whether nothing with this bound is better than the best and faster than the cutoff.
  bool Hopeless(double bound) const;
  double NextUnit(double bound) const;  // what is no faster than the bound is no faster than this
  bool Allowed(const std::vector<int>& sets) const;  // none of the sets is out
  void Found(Partition partition);
  bool InTime() const { return std::chrono::steady_clock::now() < deadline_; }

  const SetProblem& problem_;
  Relaxation& relaxation_;
  std::set<Cut>& cuts_;
  const Deadline deadline_;
  const std::function<void(Partition)> meet_;
  const double unit_;
  const std::vector<char>* out_ = nullptr;  // sets out of the whole that is being solved
  size_t all_sets_ = 0;                     // sets that are not out
  double floor_ = 0, cutoff_ = std::numeric_limits<double>::infinity();
  Root root_;
  std::vector<double> root_prices_;
  Partition best_{.seconds = std::numeric_limits<double>::infinity()};
  std::string failure_;
};

}  // namespace fusion
