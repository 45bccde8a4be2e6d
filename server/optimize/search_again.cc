#include "server/optimize/search_again.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "server/rank/race.h"
#include "server/search/kernel_identity.h"
#include "server/skeletons/skeletons.h"

namespace fusion {
namespace {

// Knows how sure the model is of the times of kernels of one graph.
class KernelDeviations {
 public:
  KernelDeviations(const Submission& submission, const CostModel& model)
      : model_(model), names_(*submission.graph, submission.sizes) {}

  // Standard deviation of log(measured / predicted).
  double Of(const FusionImplementation& kernel) {
    if (model_.memory() == nullptr) return model_.residual().deviation();
    const KernelIdentity identity = names_.Of(kernel);
    const std::pair key(identity.family, identity.sizes);
    auto known = families_.find(key);
    if (known == families_.end())
      known = families_
                  .try_emplace(key, model_.memory()->Find(identity.family), identity.sizes, model_.residual())
                  .first;
    // A family of which nothing was measured is no surer than any.
    return known->second.empty() ? model_.residual().deviation()
                                 : known->second.DeviationOf(identity.variant, FeaturesOf(kernel));
  }

  // Returns the deviation of the kernels of a cover together, each with an error of its own; *unsure is the
  // one with the largest.
  double Of(const SearchSpace& space, const CoverSolution& cover, int* unsure) {
    double variance = 0, sum = 0, most = -1;
    for (int column : cover.columns) {
      const FusionImplementation& kernel = space.implementations[column];
      const double seconds = kernel.estimate.total_seconds, own = seconds * Of(kernel);
      if (own > most) most = own, *unsure = column;
      variance += own * own;
      sum += seconds;
    }
    return sum > 0 ? std::sqrt(variance) / sum : model_.residual().deviation();
  }

 private:
  const CostModel& model_;
  const KernelNames names_;
  std::map<std::pair<std::string, std::string>, FamilyTimes> families_;  // by family and sizes
};

}  // namespace

absl::StatusOr<Waiting> AddCandidates(const Submission& submission, const CostModel& model,
                                      const Plans& again, int most, int search, const v1::BuiltCode& built,
                                      Plans* plans, GeneratedCode* code) {
  KernelDeviations deviations(submission, model);
  std::vector<WaitingCandidate> found;  // positions in `again`; the group is the kernel that is least sure
  for (const CoverSolution& cover : again.covers.covers) {
    WaitingCandidate& candidate = found.emplace_back(
        WaitingCandidate{.position = static_cast<int>(found.size()), .seconds = cover.seconds});
    candidate.deviation = deviations.Of(again.space, cover, &candidate.group);
  }
  const auto least = [](const WaitingCandidate& candidate) {
    return candidate.seconds * std::exp(-2 * candidate.deviation);
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const WaitingCandidate& a, const WaitingCandidate& b) { return least(a) < least(b); });

  Waiting waiting{.unseen_seconds = again.unseen_seconds};
  std::map<int, int> of_group;
  for (WaitingCandidate candidate : found) {
    // A kernel that is not known need not be met in every company; the next search knows it.
    if (static_cast<int>(waiting.candidates.size()) == most || of_group[candidate.group] == Race::kOfGroup) {
      waiting.unseen_seconds = std::min(waiting.unseen_seconds, candidate.seconds);
      continue;
    }
    CoverSolution cover = again.covers.covers[candidate.position];
    const auto& candidates = code->set.candidates();
    FUSION_ASSIGN_OR_RETURN(auto planned, GenerateCover(submission, model, again.space, cover,
                                                        candidates.size() + 1, *code->library));
    const auto known =
        std::find_if(candidates.begin(), candidates.end(), [&](const v1::PlannedCandidate& other) {
          return other.description().key() == planned.candidate.description().key();
        });
    candidate.position = static_cast<int>(known - candidates.begin());
    if (known != candidates.end()) {
      // Two covers may have the same code.
      const bool waits =
          std::any_of(waiting.candidates.begin(), waiting.candidates.end(),
                      [&](const WaitingCandidate& other) { return other.position == candidate.position; });
      if (waits || known->description().outcome() != v1::OUTCOME_UNSPECIFIED) continue;
      ++of_group[candidate.group];
      waiting.candidates.push_back(candidate);
      continue;
    }
    if (std::any_of(planned.units.begin(), planned.units.end(),
                    [&](const CodeUnit* unit) { return built.failed().contains(unit->build.key()); }))
      continue;
    ++of_group[candidate.group];
    waiting.candidates.push_back(candidate);
    planned.candidate.mutable_description()->set_search(search);
    AddCandidate(std::move(planned), code);
    for (int& column : cover.columns) {
      plans->space.implementations.push_back(again.space.implementations[column]);
      column = static_cast<int>(plans->space.implementations.size()) - 1;
    }
    plans->covers.covers.push_back(std::move(cover));
  }
  return waiting;
}

}  // namespace fusion
