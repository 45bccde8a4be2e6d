#include "server/cover/subset_row_cuts.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

namespace fusion {
namespace {

constexpr double kBroken = 0.02;     // what is broken by less is not worth a cut
constexpr double kWhole = 1 - 1e-6;  // a set that is taken as a whole breaks none
constexpr int kCutsOfNode = 3;       // in one call

constexpr size_t kFive = 5;
using Five = std::array<int, kFive>;

// Of nodes, and by how much, negative, their sets break the cut: the most broken ones, but for many of one
// node.
template <size_t count>
std::vector<Cut> CutsOf(const SetProblem& problem,
                        std::vector<std::pair<double, std::array<int, count>>> broken) {
  std::sort(broken.begin(), broken.end());
  std::vector<int> used(problem.node_count, 0), held(problem.sets.size(), 0);
  std::vector<Cut> cuts;
  for (const auto& [sum, nodes] : broken) {
    if (std::any_of(nodes.begin(), nodes.end(), [&](int node) { return used[node] == kCutsOfNode; }))
      continue;
    Cut cut{.limit = count / 2};
    for (int node : nodes) {
      ++used[node];
      for (int set : problem.sets_of[node])
        if (++held[set] == 2) cut.sets.push_back(set);
    }
    for (int node : nodes)
      for (int set : problem.sets_of[node]) held[set] = 0;
    std::sort(cut.sets.begin(), cut.sets.end());
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

// Some nodes, and how much of sets with two of them or more is taken.
class SomeNodes {
 public:
  SomeNodes(const SetProblem& problem, const std::vector<std::pair<int, double>>& shares)
      : problem_(problem),
        sets_of_(problem.node_count),
        gain_(problem.node_count),
        prospect_(problem.node_count) {
    for (const auto& [set, share] : shares) {
      if (share > kWhole) continue;
      for (int node : problem.sets[set].members) sets_of_[node].push_back(static_cast<int>(parts_.size()));
      parts_.push_back({set, share, 0});
    }
  }

  bool InSeveralSets(int node) const { return sets_of_[node].size() > 1; }
  double sum() const { return sum_; }
  const std::vector<int>& nodes() const { return nodes_; }

  void Clear() {
    while (!nodes_.empty()) Remove(nodes_.back());
    sum_ = 0;
  }
  void Add(int node) {
    nodes_.push_back(node);
    for (int part : sets_of_[node])
      if (++parts_[part].held == 2) sum_ += parts_[part].share;
  }
  void Remove(int node) {
    nodes_.erase(std::find(nodes_.begin(), nodes_.end(), node));
    for (int part : sets_of_[node])
      if (--parts_[part].held == 1) sum_ -= parts_[part].share;
  }
  struct Gain {
    int node;
    double sum;
  };
  // The node that adds most to the sum, of equal ones that with least in sets which have two nodes already.
  std::optional<Gain> Best() {
    std::vector<int> near;
    for (int node : nodes_)
      for (int part : sets_of_[node])
        for (int other : problem_.sets[parts_[part].set].members) {
          if (gain_[other] == 0 && prospect_[other] == 0) near.push_back(other);
          // A set is met once for each of its nodes.
          (parts_[part].held == 1 ? gain_ : prospect_)[other] += parts_[part].share / parts_[part].held;
        }
    std::optional<Gain> best;
    for (int node : near)
      if (std::find(nodes_.begin(), nodes_.end(), node) == nodes_.end() &&
          (!best || std::pair(gain_[node], -prospect_[node]) > std::pair(best->sum, -prospect_[best->node])))
        best = Gain{node, gain_[node]};
    for (int node : near) gain_[node] = prospect_[node] = 0;
    return best;
  }

 private:
  struct Part {
    int set;
    double share;
    int held;  // of the nodes
  };
  const SetProblem& problem_;
  std::vector<Part> parts_;
  std::vector<std::vector<int>> sets_of_;  // positions in parts_, of each node
  std::vector<int> nodes_;
  double sum_ = 0;
  std::vector<double> gain_, prospect_;  // of Best, else 0
};

}  // namespace

std::vector<Cut> SubsetRowCuts(const SetProblem& problem, const std::vector<std::pair<int, double>>& shares) {
  using Three = std::array<int, 3>;
  // Nodes that share a set which is taken in part.
  std::vector<std::vector<std::pair<int, double>>> parts(problem.node_count);
  std::vector<std::vector<int>> near(problem.node_count);
  for (const auto& [set, share] : shares) {
    if (share > kWhole) continue;
    for (int node : problem.sets[set].members) {
      parts[node].emplace_back(set, share);
      for (int other : problem.sets[set].members)
        if (other > node) near[node].push_back(other);
    }
  }
  for (std::vector<int>& nodes : near) {
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  }
  auto holds_two = [&](int set, const Three& three) {
    const NodeSet& nodes = problem.sets[set].nodes;
    return nodes.Contains(three[0]) + nodes.Contains(three[1]) + nodes.Contains(three[2]) >= 2;
  };
  std::vector<std::pair<double, Three>> broken;
  for (int a = 0; a < problem.node_count; ++a)
    for (size_t i = 0; i < near[a].size(); ++i)
      for (size_t k = i + 1; k < near[a].size(); ++k) {
        const Three three = {a, near[a][i], near[a][k]};
        if (!std::binary_search(near[three[1]].begin(), near[three[1]].end(), three[2])) continue;
        // Sets with two of the nodes: those of the first with one of the others, and those of the others
        // without the first.
        double sum = 0;
        for (const auto& [set, share] : parts[a])
          if (holds_two(set, three)) sum += share;
        for (const auto& [set, share] : parts[three[1]])
          if (!problem.sets[set].nodes.Contains(a) && holds_two(set, three)) sum += share;
        if (sum > 1 + kBroken) broken.emplace_back(-sum, three);
      }
  return CutsOf(problem, std::move(broken));
}

std::vector<Cut> FiveNodeCuts(const SetProblem& problem, const std::vector<std::pair<int, double>>& shares) {
  constexpr double kLeastGain = 1e-6;
  SomeNodes some(problem, shares);
  std::map<Five, double> broken;
  for (int first = 0; first < problem.node_count; ++first) {
    if (!some.InSeveralSets(first)) continue;
    some.Clear();
    some.Add(first);
    while (some.nodes().size() < kFive) {
      const auto next = some.Best();
      if (!next) break;
      some.Add(next->node);
    }
    if (some.nodes().size() < kFive) continue;
    // One node for another, as long as that helps.
    for (bool better = true; better;) {
      better = false;
      const std::vector<int> nodes = some.nodes();
      for (int node : nodes) {
        const double before = some.sum();
        some.Remove(node);
        const auto other = some.Best();
        better = other && some.sum() + other->sum > before + kLeastGain;
        some.Add(better ? other->node : node);
        if (better) break;
      }
    }
    if (some.sum() < 2 + kBroken) continue;
    Five nodes;
    std::copy(some.nodes().begin(), some.nodes().end(), nodes.begin());
    std::sort(nodes.begin(), nodes.end());
    broken.emplace(nodes, some.sum());
  }
  std::vector<std::pair<double, Five>> order;
  for (const auto& [nodes, sum] : broken) order.emplace_back(-sum, nodes);
  return CutsOf(problem, std::move(order));
}

}  // namespace fusion
