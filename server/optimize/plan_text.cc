#include "server/optimize/plan_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "server/skeletons/shared/member_order.h"
#include "server/skeletons/skeletons.h"

namespace fusion {
namespace {

std::string ProofText(const v1::SearchSummary& summary) {
  const auto proof = [](double gap) {
    return gap == 0 ? std::string("proved optimal") : absl::StrFormat("gap at most %.2f %%", gap * 100);
  };
  if (summary.complete()) return proof(summary.proved_optimal() ? 0 : summary.gap());
  return absl::StrFormat("%s among the sets that were looked at, at most %.2f %% over all",
                         proof(summary.listed_gap()), summary.gap() * 100);
}

// When what is spoken of was learned last; empty where that is not known.
std::string LastText(int64_t micros) {
  if (micros <= 0) return "";
  return absl::StrCat(", the last on ", absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::FromUnixMicros(micros),
                                                         absl::UTCTimeZone()));
}

}  // namespace

std::string PrintFusions(const Graph& graph, const SearchSpace& space) {
  std::string text;
  for (size_t i = 0; i < space.implementations.size(); ++i)
    absl::StrAppend(&text, i, "  ", Describe(graph, space.implementations[i]), "  ",
                    space.implementations[i].estimate.ToString(), "\n");
  return text;
}

std::string PrintPlans(const Graph& graph, const Plans& plans, double start_seconds) {
  std::string text = absl::StrFormat(
      "%d fusible sets, %d fusion implementations, %d covers; best predicted %.3f us, %s\n",
      plans.space.fusible_sets, plans.summary.fusion_implementations(), plans.covers.covers.size(),
      plans.summary.best_predicted_seconds() * 1e6, ProofText(plans.summary));
  text += "fusions by size:";
  for (size_t size = 1; size < plans.space.fusions_by_size.size(); ++size)
    if (plans.space.fusions_by_size[size] > 0)
      absl::StrAppend(&text, "  ", size, ": ", plans.space.fusions_by_size[size]);
  text += "\n";
  if (const v1::PredictionBasis& basis = plans.summary.prediction(); basis.jobs() > 0)
    absl::StrAppend(
        &text, absl::StrFormat(
                   "predictions learned from %d candidates of %d jobs%s, standard deviation %.1f %%: %s\n",
                   basis.candidates(), basis.jobs(), LastText(plans.learned_micros), 100 * basis.deviation(),
                   plans.corrections));
  const size_t shown = std::min<size_t>(plans.covers.covers.size(), 5);
  for (size_t i = 0; i < shown; ++i) {
    const CoverSolution& cover = plans.covers.covers[i];
    absl::StrAppend(&text, absl::StrFormat("\ncover %d, predicted %.3f us", i + 1, cover.seconds * 1e6));
    if (start_seconds > 0)
      absl::StrAppend(&text,
                      absl::StrFormat(", %.3g us of them for the first accesses", start_seconds * 1e6));
    text += "\n";
    for (int member : cover.columns) {
      const FusionImplementation& implementation = plans.space.implementations[member];
      absl::StrAppend(&text, "  ", Describe(graph, implementation), "\n      ",
                      implementation.estimate.ToString(), "\n");
      if (implementation.estimate.measured_jobs > 0)
        absl::StrAppend(&text, "      its time was measured by ",
                        implementation.estimate.measured_jobs == 1
                            ? "one job"
                            : absl::StrCat(implementation.estimate.measured_jobs, " jobs"),
                        LastText(implementation.estimate.measured_micros), "\n");
      if (const std::string unproved = UnprovedOrderText(graph, implementation); !unproved.empty())
        absl::StrAppend(&text, "      ", unproved, "\n");
    }
  }
  if (const size_t more = plans.covers.covers.size() - shown; more > 0)
    absl::StrAppend(&text, "\nand ", more, " more; --json lists up to --candidates of them\n");
  for (const std::string& note : plans.summary.notes()) absl::StrAppend(&text, "note: ", note, "\n");
  return text;
}

v1::Candidate ExplainCover(const Graph& graph, const CostModel& model, const SearchSpace& space,
                           const CoverSolution& cover, int predicted_rank) {
  v1::Candidate candidate = DescribeCover(graph, space, cover, predicted_rank);
  candidate.set_start_seconds(model.StartSeconds());
  for (int member : cover.columns) {
    const FusionImplementation& implementation = space.implementations[member];
    const RunTimeEstimate& estimate = implementation.estimate;
    v1::KernelEstimate* kernel = candidate.add_estimates();
    kernel->set_description(Describe(graph, implementation));
    kernel->set_seconds(estimate.total_seconds);
    kernel->set_memory_seconds(estimate.memory_seconds);
    kernel->set_compute_seconds(estimate.compute_seconds);
    kernel->set_alone_seconds(estimate.alone_seconds);
    kernel->set_waiting_seconds(estimate.waiting_seconds);
    kernel->set_barrier_seconds(estimate.barrier_seconds);
    kernel->set_launch_seconds(estimate.launch_seconds);
    kernel->set_correction(estimate.correction);
    kernel->set_measured(estimate.measured);
    kernel->set_bytes(estimate.bytes);
    kernel->set_flops(estimate.flops);
    kernel->set_occupancy(estimate.occupancy);
    kernel->set_waves(estimate.waves);
    kernel->set_load(estimate.load);
    kernel->set_registers(estimate.registers);
    kernel->set_shared_bytes(estimate.shared_bytes);
    kernel->set_measured_routines(estimate.measured_routines);
    kernel->set_extended_routines(estimate.extended_routines);
  }
  return candidate;
}

}  // namespace fusion
