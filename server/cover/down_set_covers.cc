#include "server/cover/down_set_covers.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "server/cover/cover_solver.h"
#include "server/cover/schedule.h"

namespace fusion {
namespace {

static_assert(kMaxDownSetNodes <= 32);
using Mask = uint32_t;

struct Reached {
  double seconds = 0;
  int last_set = -1;
};

}  // namespace

PartitionResult BestDownSetPartition(const SetProblem& problem, const std::vector<int>& allowed,
                                     Deadline deadline) {
  const int count = problem.node_count;
  std::vector<Mask> predecessors(count, 0), nodes(problem.sets.size(), 0), needed(problem.sets.size(), 0);
  for (int node = 0; node < count; ++node)
    for (int next : problem.successors[node]) predecessors[next] |= Mask{1} << node;
  for (int set : allowed) {
    for (int node : problem.sets[set].members) {
      nodes[set] |= Mask{1} << node;
      needed[set] |= predecessors[node];
    }
    needed[set] &= ~nodes[set];
  }

  absl::flat_hash_map<Mask, Reached> best;
  std::vector<std::vector<Mask>> of_size(count + 1);  // down-sets reached so far, by number of nodes
  best[0] = {};
  of_size[0].push_back(0);
  int64_t steps = 0;
  for (int size = 0; size < count; ++size) {
    for (Mask done : of_size[size]) {
      if (steps++ % 256 == 0 && std::chrono::steady_clock::now() >= deadline) return {};
      const double seconds = best[done].seconds;
      for (int set : allowed) {
        if ((nodes[set] & done) || (needed[set] & ~done)) continue;
        const Mask after = done | nodes[set];
        const Reached candidate{seconds + problem.sets[set].seconds, set};
        auto [entry, inserted] = best.try_emplace(after, candidate);
        if (inserted)
          of_size[size + static_cast<int>(problem.sets[set].members.size())].push_back(after);
        else if (candidate.seconds < entry->second.seconds)
          entry->second = candidate;
      }
    }
  }

  PartitionResult result;
  Mask at = count == 0 ? 0 : ~Mask{0} >> (32 - count);
  if (!best.contains(at)) {
    result.outcome = PartitionOutcome::kNone;
    return result;
  }
  std::vector<int> chosen;
  for (; at != 0; at &= ~nodes[chosen.back()]) chosen.push_back(best[at].last_set);
  result.outcome = PartitionOutcome::kOptimal;
  result.partition.sets = ScheduleOrder(problem, chosen).value();
  result.partition.seconds = problem.Seconds(chosen);
  return result;
}

absl::StatusOr<CoverResult> DownSetCovers(const CoverProblem& problem, const CoverOptions& options) {
  const Deadline deadline = DeadlineAfter(options.time_limit);
  if (problem.node_count > kMaxDownSetNodes)
    return absl::InvalidArgumentError(
        absl::StrCat(problem.node_count, " nodes are too many for down-sets; at most ", kMaxDownSetNodes));
  absl::StatusOr<SetProblem> reduced = MakeSetProblem(problem);
  if (!reduced.ok()) return reduced.status();
  std::vector<int> all(reduced->sets.size());
  std::iota(all.begin(), all.end(), 0);
  const PartitionResult best = BestDownSetPartition(*reduced, all, deadline);
  if (best.outcome == PartitionOutcome::kNone)
    return absl::InvalidArgumentError("no choice of columns is a schedulable cover");
  if (best.outcome == PartitionOutcome::kUnknown)
    return absl::DeadlineExceededError("the time limit passed before a cover was found");
  CoverResult result;
  CoverSolution cover;
  for (int set : best.partition.sets) cover.columns.push_back(reduced->sets[set].columns[0]);
  cover.seconds = best.partition.seconds;
  result.covers.push_back(std::move(cover));
  result.proved_optimal = true;
  result.bound_seconds = best.partition.seconds;
  result.notes = reduced->notes;
  return result;
}

}  // namespace fusion
