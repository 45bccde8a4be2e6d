#include "server/cover/near_partitions.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "server/cover/neighbourhood_search.h"
#include "server/cover/ranked_partitions.h"

namespace fusion {
namespace {

constexpr int kWindowNodes = 20;
constexpr int kOfWindow = 5;  // partitions

// Sets of the best partition that others replace; both ascending.
struct Exchange {
  double seconds = 0;  // more than before
  std::vector<int> from, to;
  friend auto operator<=>(const Exchange&, const Exchange&) = default;
};

std::vector<int> Difference(const std::vector<int>& sets, const std::vector<int>& others) {  // ascending
  std::vector<int> difference;
  std::set_difference(sets.begin(), sets.end(), others.begin(), others.end(), std::back_inserter(difference));
  return difference;
}

std::vector<int> Ascending(std::vector<int> sets) {
  std::sort(sets.begin(), sets.end());
  return sets;
}

// Returns the exchanges of the windows around all nodes, by seconds.
std::vector<Exchange> Exchanges(const SetProblem& problem, const Partition& best, Deadline deadline,
                                std::chrono::milliseconds window_time) {
  const std::vector<char> none(problem.sets.size(), 0);
  const NeighbourhoodSearch search(problem, none, deadline);
  const std::vector<int> sets = Ascending(best.sets);
  std::set<Exchange> exchanges;
  std::vector<char> tried(problem.node_count, 0);
  for (int centre = 0; centre < problem.node_count && std::chrono::steady_clock::now() < deadline; ++centre) {
    if (tried[centre]) continue;
    const std::vector<int> positions = search.Grow(best, centre, kWindowNodes);
    for (size_t i = 0; i < (positions.size() + 1) / 2; ++i)  // those in the middle
      for (int node : problem.sets[best.sets[positions[i]]].members) tried[node] = 1;
    const Window window(problem, best, positions, none);
    PartitionSolver solver(window.problem(),
                           std::min<Deadline>(deadline, std::chrono::steady_clock::now() + window_time));
    RankedPartitions ranked(solver);
    for (int k = 0; k < kOfWindow; ++k) {
      const std::optional<Partition> other = ranked.Next();
      if (!other) break;
      const Partition whole = window.Replaced(other->sets);
      const std::vector<int> others = Ascending(whole.sets);
      if (others != sets)
        exchanges.insert({whole.seconds - best.seconds, Difference(sets, others), Difference(others, sets)});
    }
  }
  return {exchanges.begin(), exchanges.end()};
}

}  // namespace

std::vector<Partition> NearPartitions(const SetProblem& problem, const Partition& best, int count,
                                      Deadline deadline, std::chrono::milliseconds window_time) {
  const auto now = std::chrono::steady_clock::now();
  const std::vector<Exchange> exchanges = Exchanges(problem, best, now + (deadline - now) / 2, window_time);
  // Combinations by seconds: each follows from the one without its last exchange, which must be a partition,
  // or from the one with the exchange before that instead.
  struct Combination {
    double seconds;
    std::vector<int> members;  // of exchanges, ascending
    bool operator>(const Combination& other) const {
      return std::tie(seconds, members) > std::tie(other.seconds, other.members);
    }
  };
  std::priority_queue<Combination, std::vector<Combination>, std::greater<>> queue;
  auto push = [&](std::vector<int> members) {
    if (members.back() == static_cast<int>(exchanges.size())) return;
    double seconds = 0;
    for (int member : members) seconds += exchanges[member].seconds;
    queue.push({seconds, std::move(members)});
  };
  std::vector<Partition> partitions;
  // One exchange may be another and a third together, where the window of one of them had no time to see it.
  std::set<std::vector<int>> seen = {Ascending(best.sets)};
  push({0});
  while (!queue.empty() && static_cast<int>(partitions.size()) < count &&
         std::chrono::steady_clock::now() < deadline) {
    const std::vector<int> members = queue.top().members;
    queue.pop();
    std::vector<int> next = members;
    ++next.back();
    push(std::move(next));
    std::vector<int> from, to;
    for (int member : members) {
      from.insert(from.end(), exchanges[member].from.begin(), exchanges[member].from.end());
      to.insert(to.end(), exchanges[member].to.begin(), exchanges[member].to.end());
    }
    from = Ascending(std::move(from));
    if (std::adjacent_find(from.begin(), from.end()) != from.end()) continue;  // not in different places
    std::vector<int> sets = Difference(Ascending(best.sets), from);
    sets.insert(sets.end(), to.begin(), to.end());
    const double seconds = problem.Seconds(sets);
    std::optional<std::vector<int>> order = ScheduleOrder(problem, sets);
    if (!order) continue;
    if (seen.insert(Ascending(sets)).second) partitions.push_back({*std::move(order), seconds});
    next = members;
    next.push_back(members.back() + 1);
    push(std::move(next));
  }
  return partitions;
}

}  // namespace fusion
