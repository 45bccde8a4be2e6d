#include "server/cover/partition_solver.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/cover/down_set_covers.h"

namespace fusion {
namespace {

// How far lp_solve's numbers may be from whole ones, and its objective from the one computed anew. Costs are
// about 1.
constexpr double kTolerance = 1e-6;

std::string SetName(const SetProblem::Set& set, size_t number) {
  if (set.members.size() > 16) return absl::StrCat("set", number);
  return absl::StrCat("s", absl::StrJoin(set.members, "_"));
}

double MeanSeconds(const SetProblem& problem) {
  double sum = 0;
  for (const SetProblem::Set& set : problem.sets) sum += set.seconds;
  return sum / static_cast<double>(problem.sets.size());
}

}  // namespace

PartitionSolver::PartitionSolver(const SetProblem& problem, Deadline deadline)
    : problem_(problem), deadline_(deadline), scale_(problem.sets.empty() ? 1 : 1 / MeanSeconds(problem)) {
  SetPrices();
}

PartitionResult PartitionSolver::Solve(const Branch& branch) {
  const Rest rest = Reduce(branch);
  if (!rest.feasible) return {PartitionOutcome::kNone, {}};
  return SolveRest(rest);
}

// Takes the forced sets, leaves out the forbidden ones, and as long as a node is in one undecided set only,
// takes that.
PartitionSolver::Rest PartitionSolver::Reduce(const Branch& branch) const {
  Rest rest;
  std::vector<char> out(problem_.sets.size(), 0), covered(problem_.node_count, 0);
  std::vector<int> left(problem_.node_count);  // undecided sets with this node
  for (int node = 0; node < problem_.node_count; ++node)
    left[node] = static_cast<int>(problem_.sets_of[node].size());
  std::vector<int> decisive;  // nodes with at most one undecided set
  auto leave_out = [&](int set) {
    if (out[set]) return;
    out[set] = 1;
    for (int node : problem_.sets[set].members)
      if (--left[node] <= 1) decisive.push_back(node);
  };
  auto take = [&](int set) {
    rest.chosen.push_back(set);
    for (int node : problem_.sets[set].members) covered[node] = 1;
    for (int node : problem_.sets[set].members)
      for (int other : problem_.sets_of[node]) leave_out(other);
  };
  for (int node = 0; node < problem_.node_count; ++node)
    if (left[node] <= 1) decisive.push_back(node);
  for (int set : branch.forced) take(set);
  for (int set : branch.forbidden) leave_out(set);
  while (!decisive.empty()) {
    const int node = decisive.back();
    decisive.pop_back();
    if (covered[node]) continue;
    const auto& sets = problem_.sets_of[node];
    const auto only = std::find_if(sets.begin(), sets.end(), [&](int set) { return !out[set]; });
    if (only == sets.end()) {
      rest.feasible = false;
      return rest;
    }
    take(*only);
  }
  for (size_t set = 0; set < problem_.sets.size(); ++set)
    if (!out[set]) rest.candidates.push_back(static_cast<int>(set));
  for (int node = 0; node < problem_.node_count; ++node)
    if (!covered[node]) rest.rows.push_back(node);
  return rest;
}

bool PartitionSolver::AddCut(const Cut& cut, const Rest& rest, LinearProgram& program) {
  int limit = cut.limit;
  for (int set : rest.chosen) limit -= std::binary_search(cut.sets.begin(), cut.sets.end(), set);
  if (limit < 0) return false;
  std::vector<int> variables;
  for (int set : cut.sets) {
    const auto found = std::lower_bound(rest.candidates.begin(), rest.candidates.end(), set);
    if (found != rest.candidates.end() && *found == set)
      variables.push_back(static_cast<int>(found - rest.candidates.begin()));
  }
  if (static_cast<int>(variables.size()) > limit) program.AddAtMost(variables, limit);
  return true;
}

// Null when a cut cannot be kept.
std::unique_ptr<LinearProgram> PartitionSolver::Program(const Rest& rest) const {
  std::vector<int> row_of(problem_.node_count, -1);
  for (size_t row = 0; row < rest.rows.size(); ++row) row_of[rest.rows[row]] = static_cast<int>(row);
  auto program = std::make_unique<LinearProgram>(static_cast<int>(rest.rows.size()),
                                                 static_cast<int>(rest.candidates.size()));
  for (int set : rest.candidates) {
    std::vector<int> rows;
    for (int node : problem_.sets[set].members) rows.push_back(row_of[node]);
    program->AddVariable(problem_.sets[set].seconds * scale_, std::move(rows));
  }
  for (const Cut& cut : cuts_)
    if (!AddCut(cut, rest, *program)) return nullptr;
  return program;
}

// Most sets cost far more than the prices of their nodes and are in no good cover. So the program is solved
// with the candidates of least excess, and what is found is the best of all when with any other candidate it
// would cost more.
PartitionResult PartitionSolver::SolveRest(const Rest& rest) {
  if (rest.rows.empty()) {
    if (auto order = ScheduleOrder(problem_, rest.chosen))
      return {PartitionOutcome::kOptimal, {std::move(*order), problem_.Seconds(rest.chosen)}};
    return {PartitionOutcome::kNone, {}};
  }
  Partition found;  // with a part of the candidates
  size_t count = 32 + 2 * rest.rows.size();
  for (;;) {
    std::vector<double> ascending;
    for (int set : rest.candidates) ascending.push_back(excess_[set]);
    std::sort(ascending.begin(), ascending.end());
    Rest part = rest;
    if (count < ascending.size()) {
      const double largest = ascending[count - 1];
      std::erase_if(part.candidates, [&](int set) { return excess_[set] > largest; });
    }
    std::vector<char> taken(problem_.sets.size(), 0);
    for (int set : part.candidates) taken[set] = 1;

    PartitionResult result = SolveProgram(part);
    if (result.outcome == PartitionOutcome::kUnknown && !found.sets.empty())
      return {PartitionOutcome::kFeasible, std::move(found)};
    if (result.outcome == PartitionOutcome::kUnknown || result.outcome == PartitionOutcome::kFeasible)
      return result;
    if (part.candidates.size() == rest.candidates.size()) return result;
    if (cuts_.size() > priced_cuts_) SetPrices();
    count = 4 * part.candidates.size();
    if (result.outcome == PartitionOutcome::kNone) continue;
    const double priced = PricedSeconds(rest);
    double least_left_out = INFINITY;
    size_t promising = 0;
    for (int set : rest.candidates) {
      if (!taken[set]) least_left_out = std::min(least_left_out, excess_[set]);
      promising += priced + excess_[set] <= result.partition.seconds;
    }
    if (result.partition.seconds <= priced + least_left_out) return result;
    count = std::clamp<size_t>(promising, 1, count);
    found = std::move(result.partition);
  }
}

PartitionResult PartitionSolver::SolveProgram(const Rest& rest) {
  std::unique_ptr<LinearProgram> program = Program(rest);
  if (!program) return {PartitionOutcome::kNone, {}};
  for (;;) {
    const ProgramSolution solution = program->Solve(/*relaxed=*/false, deadline_);
    if (solution.outcome == ProgramOutcome::kInfeasible) return {PartitionOutcome::kNone, {}};
    if (solution.outcome == ProgramOutcome::kOutOfTime) return {PartitionOutcome::kUnknown, {}};
    if (solution.outcome == ProgramOutcome::kFailed) return Repair(rest, "lp_solve failed");

    std::vector<int> chosen = rest.chosen;
    double objective = 0;
    for (size_t i = 0; i < rest.candidates.size(); ++i) {
      const double value = solution.values[i];
      if (std::abs(value - std::round(value)) > kTolerance)
        return Repair(rest, "lp_solve's solution is not whole");
      if (value < 0.5) continue;
      chosen.push_back(rest.candidates[i]);
      objective += problem_.sets[rest.candidates[i]].seconds * scale_;
    }
    if (!problem_.IsExactCover(chosen)) return Repair(rest, "lp_solve's solution is not an exact cover");
    if (std::abs(objective - solution.objective) > kTolerance * std::max(1.0, objective))
      return Repair(rest, "lp_solve's objective is not that of its solution");
    if (auto order = ScheduleOrder(problem_, chosen)) {
      const bool optimal = solution.outcome == ProgramOutcome::kOptimal;
      return {optimal ? PartitionOutcome::kOptimal : PartitionOutcome::kFeasible,
              {std::move(*order), problem_.Seconds(chosen)}};
    }
    Meet(SplitCycles(problem_, chosen));
    for (const Cut& cut : CycleCuts(problem_, chosen)) {
      if (!cuts_.insert(cut).second) return Repair(rest, "lp_solve's solution breaks a cut");
      if (!AddCut(cut, rest, *program)) return {PartitionOutcome::kNone, {}};
    }
  }
}

PartitionResult PartitionSolver::Repair(const Rest& rest, const std::string& reason) {
  if (problem_.node_count > kMaxDownSetNodes) {
    notes_.push_back(absl::StrCat(reason, "; the part of the covers that it was asked for is left out"));
    return {PartitionOutcome::kUnknown, {}};
  }
  notes_.push_back(absl::StrCat(reason, "; solved by dynamic programming instead"));
  std::vector<int> allowed = rest.chosen;
  allowed.insert(allowed.end(), rest.candidates.begin(), rest.candidates.end());
  return BestDownSetPartition(problem_, allowed, deadline_);
}

// Let y be the prices of nodes and w <= 0 those of cuts. A schedulable cover x costs
//   sum over sets of (c - y of its nodes - w of its cuts) x + sum of y + sum of w * (sets of x in the cut)
// and the last sum is no less than that of w * limit. The y and w are the dual values of the relaxed program,
// and made valid for certain: the y are lowered by what any set misses. Without an answer in time: w = 0, and
// y of a node is its smallest share of a set.
void PartitionSolver::SetPrices() {
  priced_cuts_ = cuts_.size();
  std::vector<double> prices(problem_.node_count, INFINITY);
  for (int node = 0; node < problem_.node_count; ++node)
    for (int set : problem_.sets_of[node])
      prices[node] = std::min(
          prices[node], problem_.sets[set].seconds / static_cast<double>(problem_.sets[set].members.size()));
  Rest whole;
  for (size_t set = 0; set < problem_.sets.size(); ++set) whole.candidates.push_back(static_cast<int>(set));
  for (int node = 0; node < problem_.node_count; ++node) whole.rows.push_back(node);
  ProgramSolution solution;
  if (problem_.node_count > 0) solution = Program(whole)->Solve(/*relaxed=*/true, deadline_);
  const bool solved = solution.row_prices.size() == problem_.node_count + cuts_.size();
  if (!solved && !excess_.empty()) return;  // the prices without the last cuts are as good as any
  if (solved)
    for (int node = 0; node < problem_.node_count; ++node) prices[node] = solution.row_prices[node] / scale_;

  std::vector<double> excess;
  for (const SetProblem::Set& set : problem_.sets) {
    excess.push_back(set.seconds);
    for (int node : set.members) excess.back() -= prices[node];
  }
  double price_of_all = 0;
  size_t row = problem_.node_count;
  for (const Cut& cut : cuts_) {
    const double price = solved ? std::min(0.0, solution.row_prices[row++] / scale_) : 0;
    price_of_all += price * cut.limit;
    for (int set : cut.sets) excess[set] -= price;
  }
  double missing = 0;
  for (size_t set = 0; set < excess.size(); ++set)
    missing = std::max(missing, -excess[set] / static_cast<double>(problem_.sets[set].members.size()));
  for (double price : prices) price_of_all += price - missing;
  for (size_t set = 0; set < excess.size(); ++set)
    excess[set] =
        std::max(0.0, excess[set] + missing * static_cast<double>(problem_.sets[set].members.size()));
  price_of_all_ = price_of_all;
  excess_ = std::move(excess);
}

double PartitionSolver::PricedSeconds(const Rest& rest) const {
  double seconds = price_of_all_;
  for (int set : rest.chosen) seconds += excess_[set];
  return seconds * (1 - 1e-12);  // rounding
}

double PartitionSolver::LowerBound(const Branch& branch) const {
  const Rest rest = Reduce(branch);
  if (!rest.feasible) return INFINITY;
  // Some undecided set computes each remaining node.
  std::vector<double> least(problem_.node_count, INFINITY);
  for (int set : rest.candidates)
    for (int node : problem_.sets[set].members) least[node] = std::min(least[node], excess_[set]);
  double most = 0;
  for (int node : rest.rows) most = std::max(most, least[node]);
  return PricedSeconds(rest) + most * (1 - 1e-12);
}

void PartitionSolver::Meet(std::optional<Partition> partition) {
  constexpr size_t kMaxMet = 1000;
  if (!partition || met_.size() >= kMaxMet) return;
  std::vector<int> ascending = partition->sets;
  std::sort(ascending.begin(), ascending.end());
  met_.emplace(std::move(ascending), std::move(*partition));
}

std::vector<Partition> PartitionSolver::met() const {
  std::vector<Partition> partitions;
  for (const auto& [sets, partition] : met_) partitions.push_back(partition);
  return partitions;
}

std::string PartitionSolver::Text() const {
  const Rest rest = Reduce({});
  std::string text;
  if (!rest.chosen.empty()) {
    std::vector<std::string> names;
    for (int set : rest.chosen) names.push_back(SetName(problem_.sets[set], set));
    text = absl::StrCat("/* in every cover: ", absl::StrJoin(names, " "), " */\n");
  }
  const std::unique_ptr<LinearProgram> program = Program(rest);
  if (!program || rest.rows.empty()) return text;
  std::vector<std::string> rows, columns;
  for (int node : rest.rows) rows.push_back(absl::StrCat("node", node));
  for (int set : rest.candidates) columns.push_back(SetName(problem_.sets[set], set));
  program->SetNames(rows, columns);
  absl::StrAppend(&text, "/* costs: seconds * ", scale_, " */\n", program->Text());
  return text;
}

}  // namespace fusion
