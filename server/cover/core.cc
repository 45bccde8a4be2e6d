#include "server/cover/core.h"

namespace fusion {

std::vector<int> UndecidedPositions(const SetProblem& problem, const Partition& partition,
                                    std::vector<char>* out) {
  std::vector<int> left(problem.node_count, 0);  // sets that are not out
  for (size_t set = 0; set < problem.sets.size(); ++set)
    if (!(*out)[set])
      for (int node : problem.sets[set].members) ++left[node];
  std::vector<int> owner(problem.node_count, -1);  // positions
  for (size_t i = 0; i < partition.sets.size(); ++i)
    for (int node : problem.sets[partition.sets[i]].members) owner[node] = static_cast<int>(i);
  std::vector<int> alone;  // nodes with one set left, which is the partition's
  for (int node = 0; node < problem.node_count; ++node)
    if (left[node] == 1) alone.push_back(node);
  std::vector<char> decided(partition.sets.size(), 0);
  while (!alone.empty()) {
    const int position = owner[alone.back()];
    alone.pop_back();
    if (decided[position]) continue;
    decided[position] = 1;
    const int taken = partition.sets[position];
    for (int member : problem.sets[taken].members)
      for (int other : problem.sets_of[member]) {
        if (other == taken || (*out)[other]) continue;
        (*out)[other] = 1;
        for (int node : problem.sets[other].members)
          if (--left[node] == 1) alone.push_back(node);
      }
  }
  std::vector<int> undecided;
  for (size_t i = 0; i < decided.size(); ++i)
    if (!decided[i]) undecided.push_back(static_cast<int>(i));
  return undecided;
}

}  // namespace fusion
