#include "server/service/plan_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace fusion {

std::string PrintFusions(const Graph& graph, const SearchSpace& space) {
  std::string text;
  for (size_t i = 0; i < space.implementations.size(); ++i)
    absl::StrAppend(&text, i, "  ", space.implementations[i].Describe(graph), "  ",
                    space.implementations[i].estimate.ToString(), "\n");
  return text;
}

std::string PrintPlans(const Graph& graph, const Plans& plans) {
  std::string text = absl::StrFormat(
      "%d fusible sets, %d fusion implementations, %d covers; best predicted %.3f us, %s\n",
      plans.space.fusible_sets, plans.space.implementations.size(), plans.covers.covers.size(),
      plans.summary.best_predicted_seconds() * 1e6,
      plans.summary.proved_optimal() ? "proved optimal"
                                     : absl::StrFormat("gap at most %.2f %%", plans.summary.gap() * 100));
  text += "fusions by size:";
  for (size_t size = 1; size < plans.space.fusions_by_size.size(); ++size)
    absl::StrAppend(&text, "  ", size, ": ", plans.space.fusions_by_size[size]);
  text += "\n";
  if (const v1::PredictionBasis& basis = plans.summary.prediction(); basis.jobs() > 0)
    absl::StrAppend(
        &text,
        absl::StrFormat("predictions learned from %d candidates of %d jobs, standard deviation %.1f %%: %s\n",
                        basis.candidates(), basis.jobs(), 100 * basis.deviation(), plans.corrections));
  const size_t shown = std::min<size_t>(plans.covers.covers.size(), 5);
  for (size_t i = 0; i < shown; ++i) {
    const CoverSolution& cover = plans.covers.covers[i];
    absl::StrAppend(&text, absl::StrFormat("\ncover %d, predicted %.3f us\n", i + 1, cover.seconds * 1e6));
    for (int member : cover.columns) {
      const FusionImplementation& implementation = plans.space.implementations[member];
      absl::StrAppend(&text, "  ", implementation.Describe(graph), "\n      ",
                      implementation.estimate.ToString(), "\n");
    }
  }
  if (const size_t more = plans.covers.covers.size() - shown; more > 0)
    absl::StrAppend(&text, "\nand ", more, " more; --json lists up to --candidates of them\n");
  for (const std::string& note : plans.summary.notes()) absl::StrAppend(&text, "note: ", note, "\n");
  return text;
}

std::string PrintCandidateSource(const PlannedCandidate& candidate, v1::Target target) {
  std::string text;
  for (const CodeUnit* unit : candidate.units)
    absl::StrAppend(
        &text, PrintSource(unit->code, target == v1::CUDA ? Language::kCuda : Language::kHost, false), "\n");
  return text;
}

void DumpCode(const PipelineContext& context, const GeneratedCode& code) {
  if (context.dump_directory.empty()) return;
  int number = 0;
  for (const auto& unit : code.library->units()) {
    std::string ir;
    for (const KernelLaunch& launch : unit->code.launches) ir += ir::ToString(launch.kernel);
    const std::string name = absl::StrFormat("unit%03d", number++);
    Dump(context, name + ".ir", ir);
    Dump(context, name + (unit->build.target() == v1::CUDA ? ".cu" : ".cc"), unit->source);
  }
  for (size_t i = 0; i < code.candidates.size(); ++i)
    Dump(context, absl::StrFormat("candidate%03d.txt", i + 1), code.candidates[i].candidate.DebugString());
}

}  // namespace fusion
