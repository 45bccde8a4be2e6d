#include "server/cover/relaxation.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fusion {
namespace {

constexpr double kLeastGain = 1e-7;  // of a set that enters the program; costs are about 1
// Sets of a node that are in the program from the beginning, and sets that enter at once, per node.
constexpr size_t kFirstSets = 16, kFirstPricedSets = 10;
constexpr size_t kSetsAtOnce = 4;
constexpr double kMostCost = 1e5;     // that lp_solve still adds to costs of about 1
constexpr double kLeastShare = 1e-7;  // less of a set is none
constexpr double kBroken = 1e-3;      // of a cut outside the program, to be worth a row
// A cut that had no price in so many solutions makes room, when so many of them have none.
constexpr int kOld = 3;
constexpr size_t kOldCuts = 20;

}  // namespace

Relaxation::Relaxation(const SetProblem& problem, double scale, const std::vector<double>& reduced_costs)
    : problem_(problem),
      scale_(scale),
      program_(NewProgram()),
      present_(problem.sets.size(), 0),
      closed_(problem.sets.size(), 0),
      variable_of_(problem.sets.size(), -1),
      cuts_of_(problem.sets.size()) {
  last_.reduced_costs.assign(problem.sets.size(), 0);
  // A node may stay uncovered at more than any cover costs, so that there always is a solution.
  double largest = 1;
  for (const SetProblem::Set& set : problem.sets) largest = std::max(largest, set.seconds * scale);
  uncovered_cost_ = std::min(kMostCost, largest * problem.node_count);
  for (int node = 0; node < problem.node_count; ++node) program_->AddVariable(uncovered_cost_, {node});
  std::vector<double> shares;  // of a node of each set
  for (const SetProblem::Set& set : problem.sets) {
    shares.push_back(set.seconds / static_cast<double>(set.members.size()));
    if (set.members.size() == 1 && reduced_costs.empty()) AddSet(static_cast<int>(shares.size()) - 1);
  }
  const std::vector<double>& costs = reduced_costs.empty() ? shares : reduced_costs;
  const size_t most = reduced_costs.empty() ? kFirstSets : kFirstPricedSets;
  for (const std::vector<int>& sets_of : problem.sets_of) {
    std::vector<int> sets = sets_of;
    const size_t count = std::min(most, sets.size());
    std::partial_sort(sets.begin(), sets.begin() + count, sets.end(),
                      [&](int a, int b) { return std::pair(costs[a], a) < std::pair(costs[b], b); });
    for (size_t i = 0; i < count; ++i) AddSet(sets[i]);
  }
}

std::unique_ptr<LinearProgram> Relaxation::NewProgram() const {
  return std::make_unique<LinearProgram>(
      problem_.node_count, problem_.node_count + static_cast<int>(problem_.sets.size()), problem_.filter);
}

void Relaxation::AddSet(int set) {
  if (present_[set]) return;
  present_[set] = 1;
  variable_of_[set] = problem_.node_count + static_cast<int>(variables_.size());
  variables_.push_back(set);
  std::vector<int> rows;
  for (int cut : cuts_of_[set])
    if (row_of_[cut] >= 0) rows.push_back(row_of_[cut]);
  std::sort(rows.begin(), rows.end());
  program_->AddVariable(problem_.sets[set].seconds * scale_, problem_.sets[set].members, rows);
}

void Relaxation::AddRow(int cut) {
  if (row_of_[cut] >= 0) return;
  row_of_[cut] = static_cast<int>(rows_.size());
  rows_.push_back(cut);
  unpriced_[cut] = 0;
  std::vector<int> variables;
  for (int set : cuts_[cut]->sets)
    if (present_[set]) variables.push_back(variable_of_[set]);
  std::sort(variables.begin(), variables.end());
  program_->AddAtMost(variables, cuts_[cut]->limit);
}

void Relaxation::AddCuts(const std::set<Cut>& cuts) {
  for (const Cut& cut : cuts) {
    const auto [known, is_new] = known_.insert(cut);
    if (!is_new) continue;
    const int number = static_cast<int>(cuts_.size());
    for (int set : cut.sets) cuts_of_[set].push_back(number);
    cuts_.push_back(&*known);
    row_of_.push_back(-1);
    unpriced_.push_back(0);
    AddRow(number);
  }
}

bool Relaxation::AddBrokenCuts() {
  std::vector<double> taken(cuts_.size(), 0);
  for (const auto& [set, share] : last_.shares)
    for (int cut : cuts_of_[set]) taken[cut] += share;
  bool any = false;
  for (size_t cut = 0; cut < cuts_.size(); ++cut) {
    if (row_of_[cut] >= 0 || taken[cut] <= cuts_[cut]->limit + kBroken) continue;
    AddRow(static_cast<int>(cut));
    any = true;
  }
  return any;
}

void Relaxation::Rebuild(const std::vector<int>& sets, const std::vector<int>& cuts) {
  variables_.clear();
  rows_.clear();
  present_.assign(present_.size(), 0);
  closed_.assign(closed_.size(), 0);
  row_of_.assign(row_of_.size(), -1);
  program_ = NewProgram();
  for (int node = 0; node < problem_.node_count; ++node) program_->AddVariable(uncovered_cost_, {node});
  for (int set : sets) AddSet(set);
  for (int cut : cuts) AddRow(cut);
}

void Relaxation::Shrink(size_t sets_per_node) {
  const size_t count = sets_per_node * problem_.node_count;
  if (variables_.size() <= count) return;
  std::vector<int> sets = variables_;
  std::partial_sort(sets.begin(), sets.begin() + count, sets.end(), [&](int a, int b) {
    return std::pair(last_.reduced_costs[a], a) < std::pair(last_.reduced_costs[b], b);
  });
  sets.resize(count);
  next_basis_ = {};
  Rebuild(sets, PricedCuts());
}

std::vector<int> Relaxation::PricedCuts() const {
  std::vector<int> cuts;
  for (int cut : rows_)
    if (unpriced_[cut] < kOld) cuts.push_back(cut);
  return cuts;
}

Relaxation::Basis Relaxation::LastBasis() const {
  Basis basis;
  const int nodes = problem_.node_count;
  std::vector<char> lacks(cuts_.size(), 0);
  for (int entry : program_->LastBasis()) {
    if (entry >= 0) {
      basis.entries.push_back(entry < nodes ? entry : nodes + variables_[entry - nodes]);
    } else if (~entry < nodes) {
      basis.entries.push_back(entry);
    } else {
      lacks[rows_[~entry - nodes]] = 1;
    }
  }
  if (basis.entries.empty()) return basis;
  for (int cut : rows_)
    if (!lacks[cut]) basis.tight.push_back(cut);
  return basis;
}

void Relaxation::PrepareBasis(const Basis& basis, const std::vector<char>& out) {
  const int nodes = problem_.node_count;
  if (const std::vector<int> cuts = PricedCuts(); cuts.size() + kOldCuts < rows_.size()) {
    std::vector<int> sets;
    for (int set : variables_)
      if (!out[set]) sets.push_back(set);
    Rebuild(sets, cuts);
  }
  // Cuts that the basis does not name are lacking in full: it is a basis with them and without them.
  LinearProgram::Basis entries;
  std::vector<char> is_tight(cuts_.size(), 0);
  for (int cut : basis.tight) {
    AddRow(cut);
    is_tight[cut] = 1;
  }
  for (int entry : basis.entries) {
    if (entry >= nodes) AddSet(entry - nodes);
    entries.push_back(entry >= nodes ? variable_of_[entry - nodes] : entry);
  }
  for (int cut : rows_)
    if (!is_tight[cut]) entries.push_back(~(nodes + row_of_[cut]));
  program_->GoOnFrom(entries);
}

bool Relaxation::Solve(const std::set<Cut>& cuts, const std::vector<char>& out, Deadline deadline) {
  if (problem_.node_count == 0) return false;
  if (known_.size() < cuts.size()) AddCuts(cuts);
  if (const Basis basis = std::exchange(next_basis_, {}); !basis.entries.empty()) PrepareBasis(basis, out);
  do {
    Outcome outcome = SolveProgram(out, deadline);
    if (outcome == Outcome::kWrong) {
      // The last solution has led lp_solve astray: from the beginning.
      program_->Restart();
      outcome = SolveProgram(out, deadline);
    }
    if (outcome != Outcome::kSolved) return false;
  } while (AddBrokenCuts());
  for (int cut : rows_) unpriced_[cut] = last_.prices.cuts[cut].second < 0 ? 0 : unpriced_[cut] + 1;
  return true;
}

bool Relaxation::IsSolution(const std::vector<double>& values, const std::vector<char>& out,
                            double seconds) const {
  constexpr double kRounding = 1e-5;
  const size_t nodes = problem_.node_count;
  std::vector<double> covered(values.begin(), values.begin() + problem_.node_count);
  std::vector<double> taken(cuts_.size(), 0);
  double cost = 0;  // as in the program
  auto add_cost = [&](double value, double of_one) {
    if (value >= kLeastShare) cost += value * of_one;
    return value >= -kRounding;  // not a number: no
  };
  for (size_t node = 0; node < nodes; ++node) {
    // A trace of a node that is left uncovered costs less than rounding, and would say that there is no
    // cover.
    const bool trace = values[node] >= kLeastShare && values[node] <= 10 * kRounding;
    if (trace || !add_cost(values[node], uncovered_cost_)) return false;
  }
  for (size_t i = 0; i < variables_.size(); ++i) {
    const int set = variables_[i];
    const double value = values[nodes + i];
    if (!add_cost(value, problem_.sets[set].seconds * scale_) || (out[set] && value > kRounding))
      return false;
    if (value == 0) continue;
    for (int node : problem_.sets[set].members) covered[node] += value;
    for (int cut : cuts_of_[set]) taken[cut] += value;
  }
  for (double share : covered)
    if (!(std::abs(share - 1) <= kRounding)) return false;
  for (int cut : rows_)
    if (taken[cut] > cuts_[cut]->limit + kRounding) return false;
  return std::abs(cost - seconds * scale_) <= kRounding * std::max(cost, 1.0);
}

Relaxation::Outcome Relaxation::SolveProgram(const std::vector<char>& out, Deadline deadline) {
  const size_t nodes = problem_.node_count;
  Answer answer{.reduced_costs = last_.reduced_costs};
  Prices& prices = answer.prices;
  ProgramSolution solution;
  double missing = 0;
  do {
    for (size_t i = 0; i < variables_.size(); ++i) {
      const int set = variables_[i];
      if (closed_[set] == out[set]) continue;
      closed_[set] = out[set];
      program_->SetClosed(static_cast<int>(nodes + i), out[set]);
    }
    solution = program_->Solve(deadline);
    if (solution.outcome != ProgramOutcome::kOptimal) return Outcome::kNone;
    if (solution.row_prices.size() != nodes + rows_.size() ||
        solution.values.size() != nodes + variables_.size())
      return Outcome::kWrong;
    prices.nodes.assign(solution.row_prices.begin(), solution.row_prices.begin() + problem_.node_count);
    for (double& price : prices.nodes) price /= scale_;
    prices.cuts.clear();
    for (const Cut* cut : cuts_) prices.cuts.emplace_back(cut, 0.0);
    for (size_t row = 0; row < rows_.size(); ++row)
      prices.cuts[rows_[row]].second = std::min(0.0, solution.row_prices[nodes + row] / scale_);
  } while (AddSets(prices, out, &answer.reduced_costs, &missing));
  // Not lp_solve's objective: what the prices prove, each lowered by what any set misses.
  answer.seconds = -missing * problem_.node_count;
  for (double price : prices.nodes) answer.seconds += price;
  for (const auto& [cut, price] : prices.cuts) answer.seconds += price * cut->limit;
  // Duality: what the prices prove is what the solution costs.
  if (!IsSolution(solution.values, out, answer.seconds)) return Outcome::kWrong;
  answer.feasible = std::all_of(solution.values.begin(), solution.values.begin() + problem_.node_count,
                                [](double value) { return value < kLeastShare; });
  for (size_t i = 0; i < variables_.size(); ++i)
    if (solution.values[nodes + i] > kLeastShare)
      answer.shares.emplace_back(variables_[i], solution.values[nodes + i]);
  std::sort(answer.shares.begin(), answer.shares.end());
  last_ = std::move(answer);
  return Outcome::kSolved;
}

bool Relaxation::AddSets(const Prices& prices, const std::vector<char>& out,
                         std::vector<double>* reduced_costs, double* missing) {
  std::vector<std::pair<double, int>> gains;
  *missing = 0;
  for (size_t set = 0; set < problem_.sets.size(); ++set) {
    if (out[set]) continue;
    double cost = problem_.sets[set].seconds;
    for (int node : problem_.sets[set].members) cost -= prices.nodes[node];
    for (int cut : cuts_of_[set]) cost -= prices.cuts[cut].second;
    (*reduced_costs)[set] = cost;
    *missing = std::max(*missing, -cost / static_cast<double>(problem_.sets[set].members.size()));
    if (!present_[set] && cost * scale_ < -kLeastGain) gains.emplace_back(cost, static_cast<int>(set));
  }
  std::sort(gains.begin(), gains.end());
  const size_t count = std::min(gains.size(), kSetsAtOnce * problem_.node_count);
  for (size_t i = 0; i < count; ++i) AddSet(gains[i].second);
  return count > 0;
}

}  // namespace fusion
