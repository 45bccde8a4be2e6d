#include "server/cover/cover_solver.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/cover/down_set_covers.h"
#include "server/cover/near_partitions.h"
#include "server/cover/neighbourhood_search.h"
#include "server/cover/ranked_partitions.h"
#include "server/cover/set_problem.h"

namespace fusion {
namespace {

// The covers of the partitions seen so far: each set of a partition by one of its columns, in order of time,
// each once. A choice is a position in every set's list of columns, fastest first. Its followers raise one
// position, not left of the one raised last, so each choice is reached by one way, from one that is no
// slower.
class ColumnChoices {
 public:
  ColumnChoices(const CoverProblem& problem, const SetProblem& reduced)
      : problem_(problem), reduced_(reduced) {}

  void AddPartition(Partition partition) {
    Push({0, static_cast<int>(partitions_.size()), 0, std::vector<int>(partition.sets.size(), 0)}, partition);
    partitions_.push_back(std::move(partition));
  }
  double NextSeconds() const {
    return choices_.empty() ? std::numeric_limits<double>::infinity() : choices_.top().seconds;
  }
  // Requires a finite NextSeconds().
  CoverSolution Next() {
    Choice choice = choices_.top();
    choices_.pop();
    const Partition& partition = partitions_[choice.partition];
    CoverSolution cover;
    cover.seconds = choice.seconds;
    for (size_t i = 0; i < partition.sets.size(); ++i)
      cover.columns.push_back(reduced_.sets[partition.sets[i]].columns[choice.positions[i]]);
    for (int i = choice.raised; i < static_cast<int>(partition.sets.size()); ++i) {
      if (choice.positions[i] + 1 == static_cast<int>(reduced_.sets[partition.sets[i]].columns.size()))
        continue;
      Choice follower = choice;
      follower.raised = i;
      ++follower.positions[i];
      Push(std::move(follower), partition);
    }
    return cover;
  }

 private:
  struct Choice {
    double seconds;
    int partition;
    int raised;
    std::vector<int> positions;
    bool operator>(const Choice& other) const {
      return std::tie(seconds, partition, positions) >
             std::tie(other.seconds, other.partition, other.positions);
    }
  };

  void Push(Choice choice, const Partition& partition) {
    choice.seconds = 0;
    for (size_t i = 0; i < partition.sets.size(); ++i)
      choice.seconds +=
          problem_.columns[reduced_.sets[partition.sets[i]].columns[choice.positions[i]]].seconds;
    choices_.push(std::move(choice));
  }

  const CoverProblem& problem_;
  const SetProblem& reduced_;
  std::vector<Partition> partitions_;
  std::priority_queue<Choice, std::vector<Choice>, std::greater<>> choices_;
};

absl::Status CheckOptions(const CoverOptions& options) {
  if (options.count < 1) return absl::InvalidArgumentError("the number of covers must be at least 1");
  if (!(options.time_limit.count() > 0)) return absl::InvalidArgumentError("the time limit must be positive");
  return absl::OkStatus();
}

// A best cover that is said to be proved, compared with that of the other engine where it has it in about a
// millisecond; the faster one stands.
void CheckByDownSets(const SetProblem& reduced, Deadline deadline, int count, CoverResult* result) {
  constexpr size_t kSteps = 200'000;  // a set of a down-set is one at most
  constexpr double kRounding = 1e-9;
  std::vector<int> all(reduced.sets.size());
  std::iota(all.begin(), all.end(), 0);
  const std::optional<PartitionResult> exact =
      BestDownSetPartition(reduced, all, deadline, kSteps / (reduced.sets.size() + reduced.node_count + 1));
  if (!exact || exact->outcome != PartitionOutcome::kOptimal ||
      exact->partition.seconds >= result->covers[0].seconds * (1 - kRounding))
    return;
  CoverSolution cover{.seconds = exact->partition.seconds};
  for (int set : exact->partition.sets) cover.columns.push_back(reduced.sets[set].columns[0]);
  result->notes.push_back(
      absl::StrCat("lp_solve's best cover is slower by ", result->covers[0].seconds - cover.seconds,
                   " s than that of shortest paths over down-sets, which is used; the others "
                   "are not known to be the next"));
  result->covers.insert(result->covers.begin(), std::move(cover));
  if (static_cast<int>(result->covers.size()) > count) result->covers.pop_back();
  result->bound_seconds = result->covers[0].seconds;
  result->exhausted = false;
}

}  // namespace

absl::StatusOr<CoverResult> SolveCovers(const CoverProblem& problem, const CoverOptions& options) {
  FUSION_RETURN_IF_ERROR(CheckOptions(options));
  const Deadline deadline = DeadlineAfter(options.time_limit);
  FUSION_ASSIGN_OR_RETURN(SetProblem reduced, MakeSetProblem(problem));
  reduced.filter = options.filter;

  CoverResult result;
  result.notes = reduced.notes;
  // For large problems the best cover may take all the time there is; the others are then looked for near it.
  constexpr double kSearchShare = 0.8;
  const bool near_others = options.count > 1 && reduced.node_count > kLargeNodes;
  PartitionSolver solver(reduced, near_others ? DeadlineAfter(options.time_limit * kSearchShare) : deadline);
  RankedPartitions partitions(solver);
  ColumnChoices choices(problem, reduced);
  std::set<std::vector<int>> taken;  // partitions, their sets ascending
  auto take = [&](Partition partition) {
    std::vector<int> ascending = partition.sets;
    std::sort(ascending.begin(), ascending.end());
    if (taken.insert(std::move(ascending)).second) choices.AddPartition(std::move(partition));
  };
  // A sum in another order may differ in its last digits.
  constexpr double kRounding = 1 + 1e-12;
  bool first = true, filled_up = false;
  while (static_cast<int>(result.covers.size()) < options.count) {
    if (choices.NextSeconds() < INFINITY && choices.NextSeconds() <= partitions.NextBound() * kRounding) {
      result.covers.push_back(choices.Next());
      continue;
    }
    std::optional<Partition> partition = partitions.Next();
    if (options.lp_text && first) *options.lp_text = solver.Text();
    first = false;
    if (partition) {
      take(std::move(*partition));
    } else if (!partitions.complete() && !filled_up) {
      filled_up = true;
      for (Partition& met : solver.met()) take(std::move(met));
      if (const Partition* best = solver.best_met(); near_others && best)
        for (Partition& near : NearPartitions(reduced, *best, options.count, deadline)) take(std::move(near));
      if (std::optional<Partition> single = SingleNodes(reduced)) take(std::move(*single));
    } else if (choices.NextSeconds() == INFINITY) {
      break;
    }
  }
  const bool complete = partitions.complete();
  if (result.covers.empty()) {
    if (complete) return absl::InvalidArgumentError("no choice of columns is a schedulable cover");
    if (solver.InTime())
      return absl::InternalError(absl::StrCat("no cover was found: ", absl::StrJoin(solver.notes(), "; ")));
    return absl::DeadlineExceededError("no cover was found within the time limit");
  }
  std::sort(result.covers.begin(), result.covers.end(), [](const CoverSolution& a, const CoverSolution& b) {
    return std::tie(a.seconds, a.columns) < std::tie(b.seconds, b.columns);
  });
  result.proved_optimal = partitions.first_is_optimal();
  result.bound_seconds = result.proved_optimal ? result.covers[0].seconds : solver.LowerBound({});
  result.exhausted = complete && static_cast<int>(result.covers.size()) < options.count;
  for (const std::string& note : solver.notes()) result.notes.push_back(note);
  if (!complete) {
    const auto sure = std::count_if(
        result.covers.begin(), result.covers.end(),
        [&](const CoverSolution& cover) { return cover.seconds <= partitions.lost_bound() * kRounding; });
    if (sure < static_cast<std::ptrdiff_t>(result.covers.size()))
      result.notes.push_back(absl::StrCat(
          "the search for covers was not finished (",
          solver.InTime() ? "lp_solve failed" : absl::StrCat("time limit ", options.time_limit.count(), " s"),
          "): ", sure, " of ", result.covers.size(), " covers are known to be the fastest"));
  }
  if (result.proved_optimal) CheckByDownSets(reduced, deadline, options.count, &result);
  return CheckedCovers(problem, std::move(result));
}

}  // namespace fusion
