#include "server/cover/window.h"

#include <algorithm>
#include <utility>

namespace fusion {

Window::Window(const SetProblem& problem, const Partition& partition, std::vector<int> positions,
               const std::vector<char>& out)
    : problem_(problem), partition_(partition), positions_(std::move(positions)) {
  std::sort(positions_.begin(), positions_.end());
  std::vector<int>& nodes = nodes_;
  for (int position : positions_) {
    const std::vector<int>& members = problem.sets[partition.sets[position]].members;
    nodes.insert(nodes.end(), members.begin(), members.end());
  }
  std::sort(nodes.begin(), nodes.end());
  std::vector<int> number(problem.node_count, -1);
  for (size_t i = 0; i < nodes.size(); ++i) number[nodes[i]] = static_cast<int>(i);
  const std::vector<NodeSet> through = ThroughOutside(nodes, number);
  CoverProblem smaller{.node_count = static_cast<int>(nodes.size())};
  for (size_t i = 0; i < nodes.size(); ++i) {
    NodeSet next = through[i];
    for (int node : problem.successors[nodes[i]])
      if (number[node] >= 0) next.Add(number[node]);
    smaller.successors.push_back(next.Members());
  }
  std::vector<int> set_of_column;
  for (int node : nodes)
    for (int set : problem.sets_of[node]) {
      const std::vector<int>& members = problem.sets[set].members;
      if (members[0] != node || (!out.empty() && out[set])) continue;
      if (!std::all_of(members.begin(), members.end(), [&](int member) { return number[member] >= 0; }))
        continue;
      CoverProblem::Column column{NodeSet(smaller.node_count), problem.sets[set].seconds};
      for (int member : members) column.nodes.Add(number[member]);
      // A set outside would wait for it, and it for that one.
      if (std::any_of(members.begin(), members.end(),
                      [&](int member) { return through[number[member]].Intersects(column.nodes); }))
        continue;
      smaller.columns.push_back(std::move(column));
      set_of_column.push_back(set);
    }
  window_ = MakeSetProblem(smaller).value();  // the sets of the partition are among the columns
  window_.filter = problem.filter;
  for (const SetProblem::Set& set : window_.sets) sets_.push_back(set_of_column[set.columns[0]]);
  for (int position : positions_) {
    std::vector<int> members;
    for (int node : problem.sets[partition.sets[position]].members) members.push_back(number[node]);
    inside_.sets.push_back(window_.Find(members));
  }
  inside_.seconds = window_.Seconds(inside_.sets);
  size_t replaced = 0;
  for (size_t i = 0; i < partition_.sets.size(); ++i) {
    if (replaced < positions_.size() && positions_[replaced] == static_cast<int>(i))
      ++replaced;
    else
      outside_.push_back(partition_.sets[i]);
  }
  std::sort(outside_.begin(), outside_.end());
  outside_seconds_ = problem.Seconds(outside_);
}

// Nodes of the window that sets outside lead each of its nodes to.
std::vector<NodeSet> Window::ThroughOutside(const std::vector<int>& nodes,
                                            const std::vector<int>& number) const {
  std::vector<int> owner(problem_.node_count, -1);  // positions of the sets
  for (size_t i = 0; i < partition_.sets.size(); ++i)
    for (int node : problem_.sets[partition_.sets[i]].members) owner[node] = static_cast<int>(i);
  std::vector<NodeSet> led_to(partition_.sets.size());  // by a set outside, directly or through others
  // The partition is in schedule order: what follows a set stands behind it.
  auto position = positions_.rbegin();
  for (int i = static_cast<int>(partition_.sets.size()) - 1; i >= 0; --i) {
    if (position != positions_.rend() && *position == i) {
      ++position;
      continue;
    }
    for (int node : problem_.sets[partition_.sets[i]].members)
      for (int next : problem_.successors[node]) {
        if (number[next] >= 0)
          led_to[i].Add(number[next]);
        else if (owner[next] != i)
          led_to[i].UnionWith(led_to[owner[next]]);
      }
  }
  std::vector<NodeSet> through(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i)
    for (int next : problem_.successors[nodes[i]])
      if (number[next] < 0) through[i].UnionWith(led_to[owner[next]]);
  return through;
}

int Window::NumberOf(int node) const {
  return static_cast<int>(std::lower_bound(nodes_.begin(), nodes_.end(), node) - nodes_.begin());
}

Partition Window::Replaced(const std::vector<int>& sets) const {
  std::vector<int> chosen = outside_;
  for (int set : sets) chosen.push_back(sets_[set]);
  const double seconds = problem_.Seconds(chosen);
  return {ScheduleOrder(problem_, chosen).value(), seconds};
}

std::optional<Cut> Window::Inside(const Cut& cut) const {
  Cut inside{.limit = cut.limit};
  size_t outside = 0, set = 0;  // all three are ascending
  for (int cut_set : cut.sets) {
    while (outside < outside_.size() && outside_[outside] < cut_set) ++outside;
    while (set < sets_.size() && sets_[set] < cut_set) ++set;
    if (outside < outside_.size() && outside_[outside] == cut_set)
      --inside.limit;
    else if (set < sets_.size() && sets_[set] == cut_set)
      inside.sets.push_back(static_cast<int>(set));
  }
  if (static_cast<int>(inside.sets.size()) <= inside.limit) return std::nullopt;
  return inside;
}

}  // namespace fusion
