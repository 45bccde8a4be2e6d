#include "server/optimize/build_stage.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/codegen/program.h"
#include "server/metrics/server_metrics.h"
#include "server/target/target.h"

namespace fusion {
namespace {

// Enough of a compiler's log to see what is wrong.
std::string Excerpt(const std::string& log) {
  constexpr size_t kMost = 2000;
  return log.size() <= kMost ? log : log.substr(0, kMost) + "...";
}

}  // namespace

void CountBuild(const BuildOutcome& outcome, ServerMetrics* metrics) {
  if (metrics == nullptr) return;
  (outcome.reused ? metrics->build_cache_hits : metrics->build_cache_misses)->Add();
  if (!outcome.reused)
    metrics->build_seconds.With({v1::Outcome_Name(outcome.result.outcome())})
        .Observe(outcome.result.seconds());
}

DistinctBuilds DistinctBuildsOf(const std::vector<const CodeUnit*>& units) {
  DistinctBuilds distinct;
  std::map<std::string, size_t> of_key;
  for (const CodeUnit* unit : units) {
    const auto [it, inserted] = of_key.emplace(unit->build.key(), distinct.tasks.size());
    if (inserted) distinct.tasks.push_back(unit->build);
    distinct.of_unit.push_back(it->second);
  }
  return distinct;
}

absl::Status BuildCandidates(const std::vector<int>& positions, GeneratedCode* code,
                             const PipelineContext& context, BuiltCode* built) {
  const bool first = built->builds == 0;
  std::vector<const CodeUnit*> units;
  const auto want = [&](const std::vector<const CodeUnit*>& more) {
    for (const CodeUnit* unit : more)
      if (!built->binaries.count(unit) && !built->failed.count(unit) &&
          std::find(units.begin(), units.end(), unit) == units.end())
        units.push_back(unit);
  };
  if (first) {
    want(code->reference);
    for (const auto& unfused : code->unfused) want(unfused);
  }
  for (int position : positions) want(code->candidates[position].units);
  const int before = built->builds, reused_before = built->reused,
            failed_before = static_cast<int>(built->failed.size());
  const auto emit = [&](int done, int total, int reused, int failed) {
    v1::JobEvent event;
    v1::BuildProgress* progress = event.mutable_build();
    progress->set_done(before + done);
    progress->set_total(before + total);
    progress->set_reused(reused_before + reused);
    progress->set_failed(failed_before + failed);
    if (context.emit) context.emit(std::move(event));
  };
  DistinctBuilds distinct = DistinctBuildsOf(units);
  if (const double limit = context.limits.build_seconds(); limit > 0)
    for (v1::BuildTask& task : distinct.tasks) task.set_deadline_seconds(limit);
  if (!distinct.tasks.empty()) {
    FUSION_ASSIGN_OR_RETURN(
        auto outcomes, context.dispatcher.Build(context.job, distinct.tasks, context.cancellation, emit));
    for (const BuildOutcome& outcome : outcomes) {
      ++built->builds;
      if (outcome.reused) ++built->reused;
      CountBuild(outcome, context.metrics);
    }
    for (size_t i = 0; i < units.size(); ++i) {
      const v1::BuildResult& result = outcomes[distinct.of_unit[i]].result;
      if (result.outcome() == v1::OK)
        built->binaries[units[i]] = result.binary();
      else
        built->failed[units[i]] = result;
    }
  }
  auto first_failed = [&](const std::vector<const CodeUnit*>& wanted) -> const CodeUnit* {
    for (const CodeUnit* unit : wanted)
      if (built->failed.count(unit)) return unit;
    return nullptr;
  };
  auto not_built = [&](const char* what, const CodeUnit* unit) {
    const v1::BuildResult& result = built->failed.at(unit);
    return absl::FailedPreconditionError(absl::StrCat(unit->code.launches.front().kernel.name, ", ", what,
                                                      ", was not built (", v1::Outcome_Name(result.outcome()),
                                                      "):\n", Excerpt(result.log())));
  };
  if (first) {
    if (const CodeUnit* unit = first_failed(code->reference))
      return not_built("part of the f64 reference", unit);
    const CodeUnit* unfused_failed = first_failed(code->unfused.front());
    std::erase_if(code->unfused, [&](const auto& wanted) { return first_failed(wanted) != nullptr; });
    if (code->unfused.empty()) return not_built("an unfused kernel", unfused_failed);
  }
  for (int position : positions) {
    PlannedCandidate& planned = code->candidates[position];
    if (const CodeUnit* unit = first_failed(planned.units)) {
      planned.candidate.set_outcome(built->failed.at(unit).outcome());
      planned.candidate.set_message(
          absl::StrCat(unit->code.launches.front().kernel.name, ": ", Excerpt(built->failed.at(unit).log())));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> RebuildWhatIsLost(const BuiltCode& built, const PipelineContext& context) {
  std::vector<const CodeUnit*> lost;
  for (const auto& [unit, digest] : built.binaries) {
    FUSION_ASSIGN_OR_RETURN(bool there, context.store.HasBlob(digest));
    if (!there) lost.push_back(unit);
  }
  if (lost.empty()) return false;
  DistinctBuilds distinct = DistinctBuildsOf(lost);
  if (const double limit = context.limits.build_seconds(); limit > 0)
    for (v1::BuildTask& task : distinct.tasks) task.set_deadline_seconds(limit);
  v1::JobEvent event;
  event.set_note(absl::StrCat("binaries that the build cache had and has lost: ", distinct.tasks.size(),
                              "; built again"));
  if (context.emit) context.emit(std::move(event));
  FUSION_ASSIGN_OR_RETURN(auto outcomes,
                          context.dispatcher.Build(context.job, distinct.tasks, context.cancellation));
  for (const BuildOutcome& outcome : outcomes) CountBuild(outcome, context.metrics);
  for (size_t i = 0; i < lost.size(); ++i) {
    const v1::BuildResult& result = outcomes[distinct.of_unit[i]].result;
    if (result.outcome() != v1::OK || result.binary() != built.binaries.at(lost[i])) return false;
  }
  return true;
}

v1::Program ProgramOfUnits(const Submission& submission, const DeviceDescription& device,
                           const BuiltCode& built, const std::vector<const CodeUnit*>& units,
                           const std::string& name, bool force_f64) {
  std::vector<CompiledFusion> fusions;
  for (const CodeUnit* unit : units) fusions.push_back({&unit->code, built.binaries.at(unit)});
  return BuildProgram(*submission.graph, submission.sizes, fusions,
                      {.name = name,
                       .multiprocessors = std::max(1, device.multiprocessors()),
                       .force_f64 = force_f64,
                       .programmatic = TargetOf(device.target()).Features(device).overlapping_launches});
}

}  // namespace fusion
