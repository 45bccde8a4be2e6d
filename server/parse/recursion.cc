#include "server/parse/recursion.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/similar_name.h"

namespace fusion {

Recursion::Recursion(const SyntaxTree& tree, const std::vector<Symbol>& symbols,
                     const std::vector<CheckedCall>& calls)
    : tree_(tree), symbols_(symbols), calls_(calls), components_(calls.size(), -1) {
  FindComponents();
}

std::vector<int> Recursion::Needs(int index) const {
  std::vector<int> needs;
  for (int argument : calls_[index].arguments)
    if (argument >= 0 && symbols_[argument].computed_by >= 0) needs.push_back(symbols_[argument].computed_by);
  return needs;
}

void Recursion::FindComponents() {
  struct Frame {
    int call;
    std::vector<int> needs;
    size_t next = 0;
  };
  std::vector<int> index(calls_.size(), -1), low(calls_.size(), 0);
  std::vector<int> open;  // visited, component not yet known
  std::vector<Frame> stack;
  int visited = 0;
  const auto enter = [&](int call) {
    index[call] = low[call] = visited++;
    open.push_back(call);
    stack.push_back({call, Needs(call)});
  };
  for (int root = 0; root < static_cast<int>(calls_.size()); ++root) {
    if (index[root] >= 0) continue;
    enter(root);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const int call = frame.call;
      if (frame.next < frame.needs.size()) {
        const int needed = frame.needs[frame.next++];
        if (index[needed] < 0) {
          enter(needed);
        } else if (components_[needed] < 0) {
          low[call] = std::min(low[call], index[needed]);
        }
        continue;
      }
      stack.pop_back();
      if (!stack.empty()) low[stack.back().call] = std::min(low[stack.back().call], low[call]);
      if (low[call] != index[call]) continue;
      const int component = static_cast<int>(described_.size());
      described_.push_back(false);
      for (int member = -1; member != call;) {
        member = open.back();
        open.pop_back();
        components_[member] = component;
      }
    }
  }
}

std::string Recursion::DescribeOnce(int call, int needed) {
  if (described_[components_[call]]) return "";
  described_[components_[call]] = true;
  const auto name = [&](int c) { return Shown(tree_.calls[c].result.text); };
  if (call == needed)
    return absl::StrCat(name(call), " is used to compute itself; give the new value a new name");
  // Breadth first from `needed` back to `call`.
  absl::flat_hash_map<int, int> reached_from;
  std::vector<int> queue = {needed};
  for (size_t head = 0; head < queue.size() && !reached_from.contains(call); ++head) {
    for (int next : Needs(queue[head])) {
      if (components_[next] != components_[call] || next == needed) continue;
      if (reached_from.emplace(next, queue[head]).second) queue.push_back(next);
    }
  }
  std::vector<int> path;  // from `needed` to `call`
  for (int c = call; c != needed; c = reached_from.at(c)) path.push_back(c);
  path.push_back(needed);
  std::reverse(path.begin(), path.end());
  constexpr size_t kShownSteps = 5;
  std::string text = absl::StrCat(name(call), " needs ", name(needed));
  for (size_t i = 1; i < path.size() && i <= kShownSteps; ++i)
    absl::StrAppend(&text, ", ", name(path[i - 1]), " needs ", name(path[i]));
  if (path.size() > kShownSteps + 1) absl::StrAppend(&text, " and so on back to ", name(call));
  return text;
}

}  // namespace fusion
