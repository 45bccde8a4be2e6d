#include "server/cover/schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <utility>

namespace fusion {
namespace {

// The sets of a cover as the nodes of a graph; positions are those in `chosen`.
struct Quotient {
  struct Edge {
    int to;           // position
    int exit, entry;  // the edge of the DAG that it stands for
  };
  std::vector<std::vector<Edge>> edges;  // one per pair of sets

  Quotient(const SetProblem& problem, const std::vector<int>& chosen) : edges(chosen.size()) {
    std::vector<int> owner(problem.node_count, -1);
    for (size_t i = 0; i < chosen.size(); ++i)
      for (int node : problem.sets[chosen[i]].members) owner[node] = static_cast<int>(i);
    std::vector<int> last_from(chosen.size(), -1);
    for (size_t i = 0; i < chosen.size(); ++i) {
      for (int exit : problem.sets[chosen[i]].members) {
        for (int entry : problem.successors[exit]) {
          const int to = owner[entry];
          if (to < 0 || to == static_cast<int>(i) || last_from[to] == static_cast<int>(i)) continue;
          last_from[to] = static_cast<int>(i);
          edges[i].push_back({to, exit, entry});
        }
      }
    }
  }
};

// Positions of a shortest cycle through `start`, from `start` on; empty when there is none.
std::vector<int> ShortestCycle(const Quotient& quotient, int start) {
  std::vector<int> before(quotient.edges.size(), -1);
  std::vector<int> reached = {start};
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const Quotient::Edge& edge : quotient.edges[reached[i]]) {
      if (edge.to == start) {
        std::vector<int> cycle;
        for (int at = reached[i]; at != start; at = before[at]) cycle.push_back(at);
        cycle.push_back(start);
        std::reverse(cycle.begin(), cycle.end());
        return cycle;
      }
      if (before[edge.to] >= 0) continue;
      before[edge.to] = reached[i];
      reached.push_back(edge.to);
    }
  }
  return {};
}

// For each set of a cycle the node by which the cycle leaves it and the one by which it enters.
struct Crossings {
  std::vector<int> exit, entry;

  Crossings(const Quotient& quotient, const std::vector<int>& cycle)
      : exit(cycle.size()), entry(cycle.size()) {
    for (size_t i = 0; i < cycle.size(); ++i) {
      const size_t next = (i + 1) % cycle.size();
      for (const Quotient::Edge& edge : quotient.edges[cycle[i]]) {
        if (edge.to != cycle[next]) continue;
        exit[i] = edge.exit;
        entry[next] = edge.entry;
      }
    }
  }
};

Cut CutOfCycle(const SetProblem& problem, const Quotient& quotient, const std::vector<int>& cycle) {
  auto [exit, entry] = Crossings(quotient, cycle);
  // A set whose entry leads to its exit need not be in the cycle: a path of the DAG goes through it,
  // whichever sets hold its nodes.
  size_t length = 0;
  for (size_t i = 0; i < cycle.size(); ++i) {
    if (!problem.descendants.empty() &&
        (entry[i] == exit[i] || problem.descendants[entry[i]].Contains(exit[i])))
      continue;
    entry[length] = entry[i];
    exit[length++] = exit[i];
  }
  Cut cut;
  cut.limit = static_cast<int>(length) - 1;
  for (size_t i = 0; i < length; ++i) {
    for (int set : problem.sets_of[exit[i]]) {
      const NodeSet& nodes = problem.sets[set].nodes;
      bool in_group = nodes.Contains(entry[i]);
      for (size_t j = 0; j < length && in_group; ++j)
        in_group = j == i || !(nodes.Contains(exit[j]) || nodes.Contains(entry[j]));
      if (in_group) cut.sets.push_back(set);
    }
  }
  std::sort(cut.sets.begin(), cut.sets.end());
  return cut;
}

// The members of a set that `start` reaches inside the set, or that reach it; `start` included.
NodeSet Closure(const SetProblem& problem, const SetProblem::Set& set, int start, bool forward) {
  NodeSet closure;
  closure.Add(start);
  for (bool grown = true; grown;) {
    grown = false;
    for (int node : set.members) {
      for (int next : problem.successors[node]) {
        if (!set.nodes.Contains(next)) continue;
        const int from = forward ? node : next, to = forward ? next : node;
        if (!closure.Contains(from) || closure.Contains(to)) continue;
        closure.Add(to);
        grown = true;
      }
    }
  }
  return closure;
}

// Ways to split a set that a cycle enters at `entry` and leaves at `exit`.
std::vector<std::vector<int>> Splits(const SetProblem& problem, const SetProblem::Set& set, int entry,
                                     int exit) {
  std::vector<std::vector<int>> splits;
  auto add = [&](const std::vector<std::vector<int>>& parts) {
    std::vector<int> split;
    for (const std::vector<int>& part : parts) {
      const int found = problem.Find(part);
      if (found < 0) return;
      split.push_back(found);
    }
    splits.push_back(std::move(split));
  };
  if (set.members.size() < 2) return splits;
  for (bool forward : {false, true}) {
    const NodeSet closure = Closure(problem, set, forward ? entry : exit, forward);
    if (closure.Contains(forward ? exit : entry)) continue;  // the cycle passes through the part as well
    std::vector<std::vector<int>> halves(2);
    for (int node : set.members) halves[closure.Contains(node)].push_back(node);
    add(halves);
  }
  std::vector<std::vector<int>> single;
  for (int node : set.members) single.push_back({node});
  add(single);
  return splits;
}

}  // namespace

std::optional<std::vector<int>> ScheduleOrder(const SetProblem& problem, const std::vector<int>& chosen) {
  const Quotient quotient(problem, chosen);
  std::vector<int> waiting_for(chosen.size(), 0);
  for (const auto& edges : quotient.edges)
    for (const Quotient::Edge& edge : edges) ++waiting_for[edge.to];
  using Entry = std::pair<int, int>;  // smallest node, position
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  auto add = [&](int position) { ready.emplace(problem.sets[chosen[position]].members[0], position); };
  for (size_t i = 0; i < chosen.size(); ++i)
    if (waiting_for[i] == 0) add(static_cast<int>(i));
  std::vector<int> order;
  while (!ready.empty()) {
    const int position = ready.top().second;
    ready.pop();
    order.push_back(chosen[position]);
    for (const Quotient::Edge& edge : quotient.edges[position])
      if (--waiting_for[edge.to] == 0) add(edge.to);
  }
  if (order.size() != chosen.size()) return std::nullopt;
  return order;
}

std::optional<Partition> SingleNodes(const SetProblem& problem) {
  std::vector<int> chosen;
  for (size_t set = 0; set < problem.sets.size(); ++set)
    if (problem.sets[set].members.size() == 1) chosen.push_back(static_cast<int>(set));
  if (!problem.IsExactCover(chosen)) return std::nullopt;
  return Partition{ScheduleOrder(problem, chosen).value(), problem.Seconds(chosen)};
}

std::vector<Cut> CycleCuts(const SetProblem& problem, const std::vector<int>& chosen) {
  constexpr size_t kMaxCuts = 32;  // of one cover; the next solution shows the next ones
  const Quotient quotient(problem, chosen);
  std::vector<Cut> cuts;
  for (size_t start = 0; start < chosen.size() && cuts.size() < kMaxCuts; ++start) {
    const std::vector<int> cycle = ShortestCycle(quotient, static_cast<int>(start));
    if (!cycle.empty()) cuts.push_back(CutOfCycle(problem, quotient, cycle));
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

std::optional<Partition> SplitCycles(const SetProblem& problem, std::vector<int> chosen) {
  for (;;) {
    if (auto order = ScheduleOrder(problem, chosen))
      return Partition{std::move(*order), problem.Seconds(chosen)};
    const Quotient quotient(problem, chosen);
    std::vector<int> cycle;
    for (size_t start = 0; start < chosen.size() && cycle.empty(); ++start)
      cycle = ShortestCycle(quotient, static_cast<int>(start));
    const Crossings crossings(quotient, cycle);
    double least = INFINITY;
    size_t split_at = 0;
    std::vector<int> best;
    for (size_t i = 0; i < cycle.size(); ++i) {
      const SetProblem::Set& set = problem.sets[chosen[cycle[i]]];
      for (std::vector<int>& split : Splits(problem, set, crossings.entry[i], crossings.exit[i])) {
        const double more = problem.Seconds(split) - set.seconds;
        if (more >= least) continue;
        least = more;
        split_at = cycle[i];
        best = std::move(split);
      }
    }
    if (best.empty()) return std::nullopt;
    chosen.erase(chosen.begin() + split_at);
    chosen.insert(chosen.end(), best.begin(), best.end());
  }
}

}  // namespace fusion
