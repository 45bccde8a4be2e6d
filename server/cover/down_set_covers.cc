#include "server/cover/down_set_covers.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/cover/cover_solver.h"
#include "server/cover/schedule.h"

namespace fusion {
namespace {

using Words = std::vector<uint64_t>;  // a bit for each node

bool Contains(const Words& words, int node) { return words[node / 64] >> (node % 64) & 1; }

struct Reached {
  Words done;
  double seconds = 0;
  int last_set = -1;
  size_t from = 0;  // where last_set was added
};

}  // namespace

std::optional<PartitionResult> BestDownSetPartition(const SetProblem& problem,
                                                    const std::vector<int>& allowed, Deadline deadline,
                                                    size_t most) {
  const int count = problem.node_count;
  std::vector<std::vector<int>> predecessors(count);
  for (int node = 0; node < count; ++node)
    for (int next : problem.successors[node]) predecessors[next].push_back(node);
  // A set that can follow a down-set begins with nodes all of whose predecessors have run: it is looked at
  // with the first of them.
  std::vector<std::vector<int>> begins(count), needed(problem.sets.size());
  for (int set : allowed) {
    const SetProblem::Set& nodes = problem.sets[set];
    int first = -1;
    for (int node : nodes.members) {
      bool inside = false;
      for (int before : predecessors[node]) {
        if (nodes.nodes.Contains(before))
          inside = true;
        else
          needed[set].push_back(before);
      }
      if (!inside && first < 0) first = node;
    }
    begins[first].push_back(set);
  }

  std::vector<Reached> reached = {{Words((count + 63) / 64, 0)}};
  absl::flat_hash_map<Words, size_t> position_of = {{reached[0].done, 0}};
  std::vector<std::vector<size_t>> of_size(count + 1);  // reached so far, by number of nodes
  of_size[0].push_back(0);
  for (int size = 0; size < count; ++size) {
    for (size_t i = 0; i < of_size[size].size(); ++i) {
      const size_t from = of_size[size][i];
      if (i % 64 == 0 && std::chrono::steady_clock::now() >= deadline) return PartitionResult();
      const Words done = reached[from].done;
      auto has_run = [&](int node) { return Contains(done, node); };
      for (int node = 0; node < count; ++node) {
        const std::vector<int>& before = predecessors[node];
        if (begins[node].empty() || has_run(node) || !std::all_of(before.begin(), before.end(), has_run))
          continue;
        for (int set : begins[node]) {
          const std::vector<int>& members = problem.sets[set].members;
          if (std::any_of(members.begin(), members.end(), has_run) ||
              !std::all_of(needed[set].begin(), needed[set].end(), has_run))
            continue;
          Words after = done;
          for (int member : members) after[member / 64] |= uint64_t{1} << (member % 64);
          const double seconds = reached[from].seconds + problem.sets[set].seconds;
          const auto [entry, inserted] = position_of.try_emplace(std::move(after), reached.size());
          if (inserted) {
            if (reached.size() > most) return std::nullopt;
            of_size[size + static_cast<int>(members.size())].push_back(reached.size());
            reached.push_back({entry->first, seconds, set, from});
          } else if (seconds < reached[entry->second].seconds) {
            reached[entry->second].seconds = seconds;
            reached[entry->second].last_set = set;
            reached[entry->second].from = from;
          }
        }
      }
    }
  }

  PartitionResult result;
  if (of_size[count].empty()) {
    result.outcome = PartitionOutcome::kNone;
    return result;
  }
  std::vector<int> chosen;
  for (size_t at = of_size[count][0]; at != 0; at = reached[at].from) chosen.push_back(reached[at].last_set);
  result.outcome = PartitionOutcome::kOptimal;
  result.partition.sets = ScheduleOrder(problem, chosen).value();
  result.partition.seconds = problem.Seconds(chosen);
  return result;
}

absl::StatusOr<CoverResult> DownSetCovers(const CoverProblem& problem, const CoverOptions& options) {
  const Deadline deadline = DeadlineAfter(options.time_limit);
  FUSION_ASSIGN_OR_RETURN(SetProblem reduced, MakeSetProblem(problem));
  std::vector<int> all(reduced.sets.size());
  std::iota(all.begin(), all.end(), 0);
  const std::optional<PartitionResult> found = BestDownSetPartition(reduced, all, deadline);
  if (!found)
    return absl::InvalidArgumentError(
        absl::StrCat("the graph is too wide: schedules reach more than ", kMaxDownSets, " down-sets"));
  const PartitionResult& best = *found;
  if (best.outcome == PartitionOutcome::kNone)
    return absl::InvalidArgumentError("no choice of columns is a schedulable cover");
  if (best.outcome == PartitionOutcome::kUnknown)
    return absl::DeadlineExceededError("the time limit passed before a cover was found");
  CoverResult result;
  CoverSolution cover;
  for (int set : best.partition.sets) cover.columns.push_back(reduced.sets[set].columns[0]);
  cover.seconds = best.partition.seconds;
  result.covers.push_back(std::move(cover));
  result.proved_optimal = true;
  result.bound_seconds = best.partition.seconds;
  result.notes = reduced.notes;
  return result;
}

}  // namespace fusion
