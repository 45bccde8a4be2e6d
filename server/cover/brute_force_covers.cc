#include <algorithm>
#include <functional>
#include <utility>

#include "base/status_macros.h"
#include "server/cover/cover_solver.h"
#include "server/cover/schedule.h"
#include "server/cover/set_problem.h"

namespace fusion {

absl::StatusOr<CoverResult> BruteForceCovers(const CoverProblem& problem, const CoverOptions& options) {
  if (options.count < 1) return absl::InvalidArgumentError("the number of covers must be at least 1");
  FUSION_ASSIGN_OR_RETURN(SetProblem reduced, MakeSetProblem(problem));
  CoverResult result;
  result.notes = reduced.notes;

  std::vector<int> chosen;  // sets
  NodeSet covered(problem.node_count);
  // One cover for each choice of a column per set.
  auto list_columns = [&](const std::vector<int>& order) {
    std::vector<size_t> choice(order.size(), 0);
    for (;;) {
      CoverSolution cover;
      for (size_t i = 0; i < order.size(); ++i) {
        cover.columns.push_back(reduced.sets[order[i]].columns[choice[i]]);
        cover.seconds += problem.columns[cover.columns.back()].seconds;
      }
      result.covers.push_back(std::move(cover));
      size_t i = 0;
      while (i < order.size() && ++choice[i] == reduced.sets[order[i]].columns.size()) choice[i++] = 0;
      if (i == order.size()) return;
    }
  };
  std::function<void(int)> cover_from = [&](int node) {
    while (node < problem.node_count && covered.Contains(node)) ++node;
    if (node == problem.node_count) {
      if (auto order = ScheduleOrder(reduced, chosen)) list_columns(*order);
      return;
    }
    for (int set : reduced.sets_of[node]) {
      if (reduced.sets[set].nodes.Intersects(covered)) continue;
      chosen.push_back(set);
      for (int member : reduced.sets[set].members) covered.Add(member);
      cover_from(node + 1);
      for (int member : reduced.sets[set].members) covered.Remove(member);
      chosen.pop_back();
    }
  };
  cover_from(0);

  if (result.covers.empty()) return absl::InvalidArgumentError("no choice of columns is a schedulable cover");
  std::sort(result.covers.begin(), result.covers.end(), [](const CoverSolution& a, const CoverSolution& b) {
    return std::tie(a.seconds, a.columns) < std::tie(b.seconds, b.columns);
  });
  result.exhausted = static_cast<int>(result.covers.size()) < options.count;
  if (!result.exhausted) result.covers.resize(options.count);
  result.proved_optimal = true;
  result.bound_seconds = result.covers[0].seconds;
  return result;
}

}  // namespace fusion
