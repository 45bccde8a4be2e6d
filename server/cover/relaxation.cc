#include "server/cover/relaxation.h"

#include <algorithm>
#include <array>
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

}  // namespace

Relaxation::Relaxation(const SetProblem& problem, double scale, const std::vector<double>& reduced_costs)
    : problem_(problem),
      scale_(scale),
      program_(std::make_unique<LinearProgram>(problem.node_count,
                                               problem.node_count + static_cast<int>(problem.sets.size()))),
      present_(problem.sets.size(), 0),
      closed_(problem.sets.size(), 0),
      cuts_of_(problem.sets.size()),
      reduced_costs_(problem.sets.size(), 0) {
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

void Relaxation::AddSet(int set) {
  if (present_[set]) return;
  present_[set] = 1;
  variables_.push_back(set);
  program_->AddVariable(problem_.sets[set].seconds * scale_, problem_.sets[set].members, cuts_of_[set]);
}

void Relaxation::Shrink(size_t sets_per_node) {
  const size_t nodes = problem_.node_count, count = sets_per_node * nodes;
  if (variables_.size() <= count) return;
  std::vector<int> sets = std::move(variables_);
  next_basis_.clear();
  std::partial_sort(sets.begin(), sets.begin() + count, sets.end(), [&](int a, int b) {
    return std::pair(reduced_costs_[a], a) < std::pair(reduced_costs_[b], b);
  });
  sets.resize(count);
  variables_.clear();
  present_.assign(present_.size(), 0);
  closed_.assign(closed_.size(), 0);
  program_ = std::make_unique<LinearProgram>(problem_.node_count,
                                             problem_.node_count + static_cast<int>(problem_.sets.size()));
  for (int node = 0; node < problem_.node_count; ++node) program_->AddVariable(uncovered_cost_, {node});
  std::vector<std::vector<int>> variables(cuts_.size());  // of each cut
  for (int set : sets) {
    present_[set] = 1;
    for (int cut : cuts_of_[set]) variables[cut].push_back(static_cast<int>(nodes + variables_.size()));
    variables_.push_back(set);
    program_->AddVariable(problem_.sets[set].seconds * scale_, problem_.sets[set].members);
  }
  for (size_t cut = 0; cut < cuts_.size(); ++cut) program_->AddAtMost(variables[cut], cuts_[cut]->limit);
}

void Relaxation::AddCuts(const std::set<Cut>& cuts) {
  std::vector<int> variable_of;
  for (const Cut& cut : cuts) {
    const auto [known, is_new] = known_.insert(cut);
    if (!is_new) continue;
    if (variable_of.empty()) {
      variable_of.assign(problem_.sets.size(), -1);
      for (size_t i = 0; i < variables_.size(); ++i)
        variable_of[variables_[i]] = problem_.node_count + static_cast<int>(i);
    }
    std::vector<int> present;
    for (int set : cut.sets) {
      cuts_of_[set].push_back(static_cast<int>(cuts_.size()));
      if (present_[set]) present.push_back(variable_of[set]);
    }
    std::sort(present.begin(), present.end());
    program_->AddAtMost(present, cut.limit);
    cuts_.push_back(&*known);
  }
}

bool Relaxation::Solve(const std::set<Cut>& cuts, const std::vector<char>& out, Deadline deadline) {
  const size_t nodes = problem_.node_count;
  if (nodes == 0) return false;
  if (known_.size() < cuts.size()) AddCuts(cuts);
  program_->GoOnFrom(std::exchange(next_basis_, {}));
  if (!SolveProgram(out, deadline)) return false;
  if (IsConsistent()) return true;
  // The last solution has led lp_solve astray: from the beginning.
  program_->Restart();
  return SolveProgram(out, deadline) && IsConsistent();
}

// Duality: what the prices prove is what the solution costs.
bool Relaxation::IsConsistent() const {
  constexpr double kRounding = 1e-5;
  return std::abs(objective_ - seconds_) <= kRounding * std::max(objective_, 1 / scale_);
}

bool Relaxation::SolveProgram(const std::vector<char>& out, Deadline deadline) {
  const size_t nodes = problem_.node_count;
  Prices prices;
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
    if (solution.outcome != ProgramOutcome::kOptimal || solution.row_prices.size() != nodes + cuts_.size())
      return false;
    prices.nodes.assign(solution.row_prices.begin(), solution.row_prices.begin() + problem_.node_count);
    for (double& price : prices.nodes) price /= scale_;
    prices.cuts.clear();
    for (size_t i = 0; i < cuts_.size(); ++i)
      prices.cuts.emplace_back(cuts_[i], std::min(0.0, solution.row_prices[nodes + i] / scale_));
  } while (AddSets(prices, out, &missing));
  // Not lp_solve's objective: what the prices prove, each lowered by what any set misses.
  seconds_ = -missing * problem_.node_count;
  for (double price : prices.nodes) seconds_ += price;
  for (const auto& [cut, price] : prices.cuts) seconds_ += price * cut->limit;
  objective_ = solution.objective / scale_;
  prices_ = std::move(prices);
  feasible_ = std::all_of(solution.values.begin(), solution.values.begin() + problem_.node_count,
                          [](double value) { return value < kLeastShare; });
  shares_.clear();
  for (size_t i = 0; i < variables_.size(); ++i)
    if (solution.values[nodes + i] > kLeastShare)
      shares_.emplace_back(variables_[i], solution.values[nodes + i]);
  std::sort(shares_.begin(), shares_.end());
  return true;
}

bool Relaxation::AddSets(const Prices& prices, const std::vector<char>& out, double* missing) {
  std::vector<std::pair<double, int>> gains;
  *missing = 0;
  for (size_t set = 0; set < problem_.sets.size(); ++set) {
    if (out[set]) continue;
    double cost = problem_.sets[set].seconds;
    for (int node : problem_.sets[set].members) cost -= prices.nodes[node];
    for (int cut : cuts_of_[set]) cost -= prices.cuts[cut].second;
    reduced_costs_[set] = cost;
    *missing = std::max(*missing, -cost / static_cast<double>(problem_.sets[set].members.size()));
    if (!present_[set] && cost * scale_ < -kLeastGain) gains.emplace_back(cost, static_cast<int>(set));
  }
  std::sort(gains.begin(), gains.end());
  const size_t count = std::min(gains.size(), kSetsAtOnce * problem_.node_count);
  for (size_t i = 0; i < count; ++i) AddSet(gains[i].second);
  return count > 0;
}

std::vector<Cut> WaitingPairCuts(const SetProblem& problem,
                                 const std::vector<std::pair<int, double>>& shares) {
  constexpr double kBroken = 1.02;
  constexpr size_t kMost = 200;  // in one call
  std::vector<std::vector<std::pair<int, double>>> parts(problem.node_count);
  std::vector<std::vector<int>> predecessors(problem.node_count);
  for (const auto& [set, share] : shares)
    for (int node : problem.sets[set].members) parts[node].emplace_back(set, share);
  for (int node = 0; node < problem.node_count; ++node)
    for (int next : problem.successors[node]) predecessors[next].push_back(node);
  auto in_group = [&](int set, int exit, int entry, int other_exit, int other_entry) {
    const NodeSet& nodes = problem.sets[set].nodes;
    return nodes.Contains(exit) && nodes.Contains(entry) && !nodes.Contains(other_exit) &&
           !nodes.Contains(other_entry);
  };
  std::set<std::array<int, 4>> seen;
  std::vector<std::pair<double, std::array<int, 4>>> broken;
  for (int u1 = 0; u1 < problem.node_count; ++u1)
    for (int v2 : problem.successors[u1])
      for (const auto& [set, share] : parts[u1]) {
        if (problem.sets[set].nodes.Contains(v2)) continue;
        for (int v1 : problem.sets[set].members)
          for (int u2 : predecessors[v1]) {
            if (problem.sets[set].nodes.Contains(u2)) continue;
            const std::array<int, 4> cycle = {u1, v1, u2, v2};
            // Each cycle has two beginnings.
            if (!seen.insert(std::min(cycle, std::array<int, 4>{u2, v2, u1, v1})).second) continue;
            double sum = 0;
            for (const auto& [other, part] : parts[u1])
              if (in_group(other, u1, v1, u2, v2)) sum += part;
            for (const auto& [other, part] : parts[u2])
              if (in_group(other, u2, v2, u1, v1)) sum += part;
            if (sum > kBroken) broken.emplace_back(-sum, cycle);
          }
      }
  std::sort(broken.begin(), broken.end());
  if (broken.size() > kMost) broken.resize(kMost);
  std::vector<Cut> cuts;
  for (const auto& [sum, cycle] : broken) {
    const auto [u1, v1, u2, v2] = cycle;
    Cut cut{.limit = 1};
    for (int set : problem.sets_of[u1])
      if (in_group(set, u1, v1, u2, v2)) cut.sets.push_back(set);
    for (int set : problem.sets_of[u2])
      if (in_group(set, u2, v2, u1, v1)) cut.sets.push_back(set);
    std::sort(cut.sets.begin(), cut.sets.end());
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

}  // namespace fusion
