#include "server/cover/partition_solver.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/cover/down_set_covers.h"
#include "server/cover/dual_ascent.h"
#include "server/cover/greedy_partition.h"
#include "server/cover/neighbourhood_search.h"
#include "server/cover/subgradient.h"

namespace fusion {
namespace {

std::string SetName(const SetProblem::Set& set, size_t number) {
  if (set.members.size() > 16) return absl::StrCat("set", number);
  return absl::StrCat("s", absl::StrJoin(set.members, "_"));
}

// The relaxed program of more nodes may not be solved in time: these begin with a partition from windows
// alone.
constexpr int kVeryLargeNodes = 600;

double MeanSeconds(const SetProblem& problem) {
  double sum = 0;
  for (const SetProblem::Set& set : problem.sets) sum += set.seconds;
  return sum / static_cast<double>(problem.sets.size());
}

// Returns the reduced costs of the sets of a large problem; none for a small one.
std::vector<double> FirstReducedCosts(const SetProblem& problem) {
  constexpr int kSteps = 300;
  std::vector<double> costs;
  if (problem.node_count <= kLargeNodes) return costs;
  const std::vector<double> prices = SubgradientPrices(problem, SharePrices(problem), kSteps);
  for (const SetProblem::Set& set : problem.sets) {
    costs.push_back(set.seconds);
    for (int node : set.members) costs.back() -= prices[node];
  }
  return costs;
}

}  // namespace

PartitionSolver::PartitionSolver(const SetProblem& problem, Deadline deadline)
    : problem_(problem),
      deadline_(deadline),
      scale_(problem.sets.empty() ? 1 : 1 / MeanSeconds(problem)),
      relaxation_(problem, scale_, FirstReducedCosts(problem)) {
  if (problem.node_count > kVeryLargeNodes) Start();
  SetPrices();
}

void PartitionSolver::Start() {
  const auto now = std::chrono::steady_clock::now();
  const Deadline deadline = now + (deadline_ - now) / 3;
  start_ = GreedyPartition(problem_, deadline);
  if (!start_) return;
  const std::vector<char> none(problem_.sets.size(), 0);
  NeighbourhoodSearch search(problem_, none, deadline);
  for (int nodes : {20, 40, 80}) {
    if (nodes == 80 && problem_.node_count < 2 * kVeryLargeNodes)
      break;  // the relaxed program will lead to better ones
    start_ = search.Improve(*std::move(start_), nodes);
  }
  window_prices_ = search.prices();
  Meet(start_);
}

PartitionResult PartitionSolver::Solve(const Branch& branch) {
  const Rest rest = Reduce(branch);
  if (!rest.feasible) return {PartitionOutcome::kNone, {}};
  if (rest.rows.empty()) {
    if (auto order = ScheduleOrder(problem_, rest.chosen))
      return {PartitionOutcome::kOptimal, {std::move(*order), problem_.Seconds(rest.chosen)}};
    return {PartitionOutcome::kNone, {}};
  }
  std::vector<char> out(problem_.sets.size(), 1);
  for (const auto* sets : {&rest.chosen, &rest.candidates})
    for (int set : *sets) out[set] = 0;
  const bool whole = branch.forced.empty() && branch.forbidden.empty();
  const bool has_start =
      start_ && std::none_of(start_->sets.begin(), start_->sets.end(), [&](int set) { return out[set]; });
  BranchAndCut::Answer answer =
      BranchAndCut(problem_, relaxation_, cuts_, deadline_, [this](Partition partition) {
        Meet(std::move(partition));
      }).Solve(out, has_start ? &*start_ : nullptr, whole && problem_.node_count > kLargeNodes);
  if (whole && answer.result.outcome == PartitionOutcome::kFeasible) start_ = answer.result.partition;
  if (whole) root_bound_ = std::max(root_bound_, answer.bound * (1 - 1e-12));
  if (!answer.failure.empty()) return Repair(rest, std::move(answer.result), answer.failure);
  return std::move(answer.result);
}

void PartitionSolver::UpdatePrices() {
  if (cuts_.size() > priced_cuts_) SetPrices();
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
  for (int set : rest.chosen) {
    const auto [begin, end] = std::equal_range(cut.sets.begin(), cut.sets.end(), set);
    limit -= static_cast<int>(end - begin);
  }
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

PartitionResult PartitionSolver::Repair(const Rest& rest, PartitionResult result, const std::string& reason) {
  if (result.outcome == PartitionOutcome::kOptimal || result.outcome == PartitionOutcome::kNone) {
    Note(absl::StrCat(reason, "; its other programs say the same without that one"));
    return result;
  }
  if (!too_many_down_sets_) {
    std::vector<int> allowed = rest.chosen;
    allowed.insert(allowed.end(), rest.candidates.begin(), rest.candidates.end());
    std::optional<PartitionResult> exact = BestDownSetPartition(problem_, allowed, deadline_);
    if (exact && exact->outcome != PartitionOutcome::kUnknown) {
      Note(absl::StrCat(reason, "; solved by shortest paths over down-sets instead"));
      return *std::move(exact);
    }
    too_many_down_sets_ = !exact;
  }
  Note(absl::StrCat(reason, result.outcome == PartitionOutcome::kFeasible
                                ? "; a part of the covers was left out"
                                : "; the part of the covers that it was asked for is left out"));
  return result;
}

void PartitionSolver::Note(const std::string& text) {
  const auto known =
      std::find_if(notes_.begin(), notes_.end(), [&](const auto& note) { return note.first == text; });
  if (known == notes_.end())
    notes_.emplace_back(text, 1);
  else
    ++known->second;
}

std::vector<std::string> PartitionSolver::notes() const {
  std::vector<std::string> notes;
  for (const auto& [text, times] : notes_)
    notes.push_back(times == 1 ? text : absl::StrCat(text, " (", times, " times)"));
  return notes;
}

// Let y be the prices of nodes and w <= 0 those of cuts. A schedulable cover x costs
//   sum over sets of (c - y of its nodes - w of its cuts) x + sum of y + sum of w * (sets of x in the cut)
// and the last sum is no less than that of w * limit. The y and w are the dual values of the relaxed program,
// and made valid for certain: the y are lowered by what any set misses. Without an answer in time: w = 0,
// and y by dual ascent.
void PartitionSolver::SetPrices() {
  priced_cuts_ = cuts_.size();
  const bool solved = relaxation_.Solve(cuts_, std::vector<char>(problem_.sets.size(), 0), deadline_);
  if (!solved && InTime() && problem_.node_count > 0)
    Note("lp_solve failed; its prices are not used for bounds");
  if (!solved && !excess_.empty()) return;  // the prices without the last cuts are as good as any
  std::vector<double> prices;
  if (solved) {
    prices = relaxation_.prices().nodes;
  } else {
    auto sum = [](const std::vector<double>& some) { return std::accumulate(some.begin(), some.end(), 0.0); };
    prices = SharePrices(problem_);
    if (!window_prices_.empty())
      if (std::vector<double> others = FeasiblePrices(problem_, window_prices_); sum(others) > sum(prices))
        prices = std::move(others);
  }
  std::vector<double> excess;
  for (const SetProblem::Set& set : problem_.sets) {
    excess.push_back(set.seconds);
    for (int node : set.members) excess.back() -= prices[node];
  }
  double price_of_all = 0;
  if (solved)
    for (const auto& [cut, price] : relaxation_.prices().cuts) {
      price_of_all += price * cut->limit;
      for (int set : cut->sets) excess[set] -= price;
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
  if (rest.rows.empty()) return std::max(root_bound_, PricedSeconds(rest));
  // Some undecided set computes each remaining node.
  std::vector<double> least(problem_.node_count, INFINITY);
  for (int set : rest.candidates)
    for (int node : problem_.sets[set].members) least[node] = std::min(least[node], excess_[set]);
  double most = 0;
  for (int node : rest.rows) most = std::max(most, least[node]);
  return std::max(root_bound_, PricedSeconds(rest) + most * (1 - 1e-12));
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

const Partition* PartitionSolver::best_met() const {
  const auto best = std::min_element(met_.begin(), met_.end(), [](const auto& a, const auto& b) {
    return a.second.seconds < b.second.seconds;
  });
  return best == met_.end() ? nullptr : &best->second;
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
