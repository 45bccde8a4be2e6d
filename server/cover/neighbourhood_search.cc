#include "server/cover/neighbourhood_search.h"

#include <algorithm>
#include <set>
#include <utility>

namespace fusion {
namespace {

constexpr std::chrono::milliseconds kWindowTime{500};  // for one window

}  // namespace

NeighbourhoodSearch::NeighbourhoodSearch(const SetProblem& problem, const std::vector<char>& out,
                                         Deadline deadline)
    : problem_(problem),
      out_(out),
      deadline_(deadline),
      prices_(problem.node_count, 0),
      neighbours_(problem.node_count) {
  for (int node = 0; node < problem.node_count; ++node)
    for (int next : problem.successors[node]) {
      neighbours_[node].push_back(next);
      neighbours_[next].push_back(node);
    }
}

std::vector<int> NeighbourhoodSearch::Grow(const Partition& partition, int centre, int window_nodes) const {
  std::vector<int> owner(problem_.node_count);
  for (size_t i = 0; i < partition.sets.size(); ++i)
    for (int node : problem_.sets[partition.sets[i]].members) owner[node] = static_cast<int>(i);
  std::vector<int> window = {owner[centre]};
  std::vector<char> seen(partition.sets.size(), 0);
  seen[owner[centre]] = 1;
  size_t nodes = problem_.sets[partition.sets[owner[centre]]].members.size();
  for (size_t i = 0; i < window.size(); ++i)
    for (int node : problem_.sets[partition.sets[window[i]]].members)
      for (int near : neighbours_[node]) {
        const int position = owner[near];
        const size_t size = problem_.sets[partition.sets[position]].members.size();
        if (seen[position] || nodes + size > static_cast<size_t>(window_nodes)) continue;
        seen[position] = 1;
        nodes += size;
        window.push_back(position);
      }
  return window;
}

Partition NeighbourhoodSearch::Improve(Partition partition, int window_nodes) {
  std::vector<char> tried(problem_.node_count, 0);  // in the middle of a window that has nothing better
  int centre = 0;
  for (int passed = 0; passed < problem_.node_count; ++passed, centre = (centre + 1) % problem_.node_count) {
    if (tried[centre]) continue;
    if (std::chrono::steady_clock::now() >= deadline_) break;
    const std::vector<int> positions = Grow(partition, centre, window_nodes);
    const Window window(problem_, partition, positions, out_);
    const BranchAndCut::Answer answer = Solve(window);
    auto each_node = [&](size_t first_positions, auto what) {
      for (size_t i = 0; i < first_positions; ++i)
        for (int node : problem_.sets[partition.sets[positions[i]]].members) what(node);
    };
    const size_t middle = (positions.size() + 1) / 2;  // those that were added first
    if (!answer.root_prices.empty())
      each_node(middle, [&](int node) { prices_[node] = answer.root_prices[window.NumberOf(node)]; });
    if (answer.result.partition.seconds < window.inside().seconds) {
      Partition better = window.Replaced(answer.result.partition.sets);
      if (better.seconds < partition.seconds) {
        each_node(positions.size(), [&](int node) {
          tried[node] = 0;
          for (int near : neighbours_[node]) tried[near] = 0;
        });
        each_node(middle, [&](int node) { tried[node] = 1; });
        partition = std::move(better);
        passed = 0;
        continue;
      }
    }
    each_node(middle, [&](int node) { tried[node] = 1; });
  }
  return partition;
}

BranchAndCut::Answer NeighbourhoodSearch::Solve(const Window& window) const {
  const SetProblem& problem = window.problem();
  Relaxation relaxation(problem, static_cast<double>(window.inside().sets.size()) / window.inside().seconds);
  std::set<Cut> cuts;
  const Deadline deadline = std::min<Deadline>(deadline_, std::chrono::steady_clock::now() + kWindowTime);
  return BranchAndCut(problem, relaxation, cuts, deadline, [](const Partition&) {})
      .Solve(std::vector<char>(problem.sets.size(), 0), &window.inside());
}

}  // namespace fusion
