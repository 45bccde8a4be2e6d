#include "server/cover/greedy_partition.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "server/cover/schedule.h"

namespace fusion {
namespace {

class Merging {
 public:
  Merging(const SetProblem& problem, std::vector<int> single)
      : problem_(problem), owner_(std::move(single)), reached_(problem.sets.size(), 0) {}

  bool IsFree(int set) const {
    const std::vector<int>& members = problem_.sets[set].members;
    return std::all_of(members.begin(), members.end(),
                       [&](int node) { return problem_.sets[owner_[node]].members.size() == 1; });
  }
  // Returns whether a path through the chosen sets leaves this one and comes back.
  bool ClosesCycle(int set) {
    const SetProblem::Set& start = problem_.sets[set];
    std::vector<int> reached;  // sets
    bool closes = false;
    auto follow = [&](int node) {
      for (int next : problem_.successors[node])
        if (!start.nodes.Contains(next) && !reached_[owner_[next]]) {
          reached_[owner_[next]] = 1;
          reached.push_back(owner_[next]);
        }
    };
    for (int node : start.members) follow(node);
    for (size_t i = 0; i < reached.size() && !closes; ++i)
      for (int node : problem_.sets[reached[i]].members) {
        const std::vector<int>& next = problem_.successors[node];
        closes =
            closes || std::any_of(next.begin(), next.end(), [&](int to) { return start.nodes.Contains(to); });
        follow(node);
      }
    for (int other : reached) reached_[other] = 0;
    return closes;
  }
  void Merge(int set) {
    for (int node : problem_.sets[set].members) owner_[node] = set;
  }
  std::vector<int> Sets() const {
    std::vector<int> sets = owner_;
    std::sort(sets.begin(), sets.end());
    sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
    return sets;
  }

 private:
  const SetProblem& problem_;
  std::vector<int> owner_;     // per node: its set
  std::vector<char> reached_;  // per set
};

}  // namespace

std::optional<Partition> GreedyPartition(const SetProblem& problem, Deadline deadline) {
  std::vector<int> single(problem.node_count);
  for (int node = 0; node < problem.node_count; ++node)
    if ((single[node] = problem.Find({node})) < 0) return std::nullopt;
  std::vector<std::pair<double, int>> gains;  // the largest saving first
  for (size_t set = 0; set < problem.sets.size(); ++set) {
    double gain = problem.sets[set].seconds;
    for (int node : problem.sets[set].members) gain -= problem.sets[single[node]].seconds;
    if (gain < 0) gains.emplace_back(gain, static_cast<int>(set));
  }
  std::sort(gains.begin(), gains.end());
  Merging merging(problem, std::move(single));
  for (const auto& [gain, set] : gains) {
    if (std::chrono::steady_clock::now() >= deadline) break;
    if (merging.IsFree(set) && !merging.ClosesCycle(set)) merging.Merge(set);
  }
  const std::vector<int> sets = merging.Sets();
  std::optional<std::vector<int>> order = ScheduleOrder(problem, sets);
  if (!order) return std::nullopt;
  return Partition{*std::move(order), problem.Seconds(sets)};
}

}  // namespace fusion
