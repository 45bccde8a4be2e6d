#include "server/cover/set_problem.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace fusion {
namespace {

absl::Status CheckColumns(const CoverProblem& problem) {
  for (size_t i = 0; i < problem.columns.size(); ++i) {
    const CoverProblem::Column& column = problem.columns[i];
    const std::vector<int> members = column.nodes.Members();
    if (members.empty()) return absl::InvalidArgumentError(absl::StrCat("column ", i, " has no nodes"));
    if (members.back() >= problem.node_count)
      return absl::InvalidArgumentError(
          absl::StrCat("column ", i, " names node ", members.back(), " of ", problem.node_count));
    if (!std::isfinite(column.seconds) || column.seconds <= 0)
      return absl::InvalidArgumentError(
          absl::StrCat("column ", i, ": its time must be finite and positive, not ", column.seconds, " s"));
  }
  return absl::OkStatus();
}

// All nodes, producers first.
absl::StatusOr<std::vector<int>> TopologicalOrder(const CoverProblem& problem) {
  if (problem.node_count < 0 || static_cast<int>(problem.successors.size()) != problem.node_count)
    return absl::InvalidArgumentError(
        absl::StrCat(problem.successors.size(), " successor lists for ", problem.node_count, " nodes"));
  std::vector<int> waiting_for(problem.node_count, 0), order;
  for (const std::vector<int>& list : problem.successors) {
    for (int next : list) {
      if (next < 0 || next >= problem.node_count)
        return absl::InvalidArgumentError(
            absl::StrCat("an edge leads to node ", next, " of ", problem.node_count));
      ++waiting_for[next];
    }
  }
  for (int node = 0; node < problem.node_count; ++node)
    if (waiting_for[node] == 0) order.push_back(node);
  for (size_t i = 0; i < order.size(); ++i)
    for (int next : problem.successors[order[i]])
      if (--waiting_for[next] == 0) order.push_back(next);
  if (static_cast<int>(order.size()) != problem.node_count)
    return absl::InvalidArgumentError("the graph has a cycle");
  return order;
}

constexpr int kMaxReachabilityNodes = 20'000;

// Returns the place of each node in the order.
std::vector<int> PositionsIn(const std::vector<int>& order) {
  std::vector<int> positions(order.size());
  for (size_t i = 0; i < order.size(); ++i) positions[order[i]] = static_cast<int>(i);
  return positions;
}

// Returns the descendants of each node, by one union of bit vectors per edge; none where the graph is too
// large for that.
std::vector<NodeSet> Descendants(const CoverProblem& problem, const std::vector<int>& order) {
  if (problem.node_count > kMaxReachabilityNodes) return {};
  std::vector<NodeSet> descendants(problem.node_count, NodeSet(problem.node_count));
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    for (int next : problem.successors[*node]) {
      descendants[*node].Add(next);
      descendants[*node].UnionWith(descendants[next]);
    }
  }
  return descendants;
}

std::vector<NodeSet> Ancestors(const CoverProblem& problem, const std::vector<int>& order) {
  if (problem.node_count > kMaxReachabilityNodes) return {};
  std::vector<NodeSet> ancestors(problem.node_count, NodeSet(problem.node_count));
  for (int node : order)
    for (int next : problem.successors[node]) {
      ancestors[next].Add(node);
      ancestors[next].UnionWith(ancestors[node]);
    }
  return ancestors;
}

bool IsConvex(const CoverProblem& problem, const std::vector<int>& positions, const SetProblem::Set& set) {
  int last = 0;
  for (int member : set.members) last = std::max(last, positions[member]);
  std::vector<int> outside;  // descendants of the set that could still lead back to it
  NodeSet seen(problem.node_count);
  auto visit = [&](int from) {
    for (int next : problem.successors[from]) {
      if (set.nodes.Contains(next) || seen.Contains(next) || positions[next] >= last) continue;
      seen.Add(next);
      outside.push_back(next);
    }
  };
  for (int member : set.members) visit(member);
  for (size_t i = 0; i < outside.size(); ++i) {
    for (int next : problem.successors[outside[i]])
      if (set.nodes.Contains(next)) return false;
    visit(outside[i]);
  }
  return true;
}

}  // namespace

int SetProblem::Find(const std::vector<int>& members) const {
  auto before = [](const Set& set, const std::vector<int>& other) { return set.members < other; };
  const auto found = std::lower_bound(sets.begin(), sets.end(), members, before);
  return found != sets.end() && found->members == members ? static_cast<int>(found - sets.begin()) : -1;
}

double SetProblem::Seconds(const std::vector<int>& chosen) const {
  std::vector<int> ascending = chosen;
  std::sort(ascending.begin(), ascending.end());
  double sum = 0;
  for (int set : ascending) sum += sets[set].seconds;
  return sum;
}

bool SetProblem::WaitForEachOther(const Set& from, const Set& to) const {
  auto reaches = [this](const Set& a, const Set& b) {
    for (int start : a.members)
      for (int end : b.members)
        if (descendants[start].Contains(end)) return true;
    return false;
  };
  return !descendants.empty() && reaches(from, to) && reaches(to, from);
}

bool SetProblem::IsExactCover(const std::vector<int>& chosen) const {
  std::vector<int> times(node_count, 0);
  for (int set : chosen)
    for (int node : sets[set].members) ++times[node];
  return std::all_of(times.begin(), times.end(), [](int count) { return count == 1; });
}

absl::StatusOr<SetProblem> MakeSetProblem(const CoverProblem& problem) {
  FUSION_ASSIGN_OR_RETURN(const std::vector<int> order, TopologicalOrder(problem));
  const std::vector<int> positions = PositionsIn(order);
  FUSION_RETURN_IF_ERROR(CheckColumns(problem));

  std::map<std::vector<int>, std::vector<int>> columns_of;  // by members
  for (size_t i = 0; i < problem.columns.size(); ++i)
    columns_of[problem.columns[i].nodes.Members()].push_back(static_cast<int>(i));

  SetProblem result;
  result.node_count = problem.node_count;
  result.successors = problem.successors;
  result.sets_of.resize(problem.node_count);
  result.descendants = Descendants(problem, order);
  result.ancestors = Ancestors(problem, order);
  size_t left_out = 0;
  for (auto& [members, columns] : columns_of) {
    auto faster = [&](int a, int b) { return problem.columns[a].seconds < problem.columns[b].seconds; };
    std::stable_sort(columns.begin(), columns.end(), faster);
    SetProblem::Set set{problem.columns[columns[0]].nodes, members, columns,
                        problem.columns[columns[0]].seconds};
    if (!IsConvex(problem, positions, set)) {
      left_out += columns.size();
      continue;
    }
    for (int node : members) result.sets_of[node].push_back(static_cast<int>(result.sets.size()));
    result.sets.push_back(std::move(set));
  }
  if (left_out > 0)
    result.notes.push_back(absl::StrCat(left_out, " columns left out: their nodes are not convex"));
  for (int node = 0; node < problem.node_count; ++node)
    if (result.sets_of[node].empty())
      return absl::InvalidArgumentError(
          absl::StrCat("node ", node, " is in no ", left_out ? "convex " : "", "column"));
  return result;
}

}  // namespace fusion
