#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/cover/cover_solver.h"

namespace fusion {

namespace {
constexpr double kRounding = 1e-9;  // of sums in another order
}  // namespace

absl::Status CheckCover(const CoverProblem& problem, const CoverSolution& cover) {
  std::vector<int> step_of(problem.node_count, -1);
  double seconds = 0;
  for (size_t step = 0; step < cover.columns.size(); ++step) {
    const int column = cover.columns[step];
    if (column < 0 || column >= static_cast<int>(problem.columns.size()))
      return absl::InternalError(absl::StrCat("it names column ", column, " of ", problem.columns.size()));
    seconds += problem.columns[column].seconds;
    for (int node : problem.columns[column].nodes.Members()) {
      if (node >= problem.node_count)
        return absl::InternalError(absl::StrCat("it names node ", node, " of ", problem.node_count));
      if (step_of[node] >= 0) return absl::InternalError(absl::StrCat("it computes node ", node, " twice"));
      step_of[node] = static_cast<int>(step);
    }
  }
  for (int node = 0; node < problem.node_count; ++node)
    if (step_of[node] < 0) return absl::InternalError(absl::StrCat("it does not compute node ", node));
  for (int node = 0; node < problem.node_count; ++node)
    for (int next : problem.successors[node])
      if (step_of[next] < step_of[node])
        return absl::InternalError(absl::StrCat("it runs node ", next, " before node ", node));
  if (!(std::abs(seconds - cover.seconds) <= kRounding * seconds))
    return absl::InternalError(
        absl::StrCat("its columns take ", seconds, " s together, not ", cover.seconds, " s"));
  return absl::OkStatus();
}

absl::StatusOr<CoverResult> CheckedCovers(const CoverProblem& problem, CoverResult result) {
  std::vector<CoverSolution> right;
  absl::Status first;
  for (CoverSolution& cover : result.covers) {
    if (absl::Status status = CheckCover(problem, cover); status.ok())
      right.push_back(std::move(cover));
    else
      first.Update(status);
  }
  if (right.empty()) return absl::InternalError(absl::StrCat("no cover is valid: ", first.message()));
  if (!first.ok()) {
    result.notes.push_back(absl::StrCat(result.covers.size() - right.size(),
                                        " covers were refused by the last check: ", first.message()));
    result.proved_optimal = result.exhausted = false;
  }
  result.covers = std::move(right);
  const double fastest = result.covers[0].seconds;
  if (result.bound_seconds > fastest && result.bound_seconds <= fastest * (1 + kRounding))
    result.bound_seconds = fastest;
  if (!(result.bound_seconds <= fastest)) {
    result.notes.push_back(absl::StrCat("the bound, ", result.bound_seconds, " s, is above a cover of ",
                                        fastest, " s, and is not used"));
    result.bound_seconds = 0;
    result.proved_optimal = result.exhausted = false;
  }
  return result;
}

}  // namespace fusion
