#include "server/optimize/build_stage.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/metrics/server_metrics.h"

namespace fusion {
namespace {

// Enough of a compiler's log to see what is wrong.
std::string Excerpt(const std::string& log) {
  constexpr size_t kMost = 2000;
  return log.size() <= kMost ? log : log.substr(0, kMost) + "...";
}

void SetDeadlines(const PipelineContext& context, std::vector<v1::BuildTask>* tasks) {
  if (const double limit = context.limits.build_seconds(); limit > 0)
    for (v1::BuildTask& task : *tasks) task.set_deadline_seconds(limit);
}

v1::BuildProgress ProgressOf(const v1::BuiltCode& built) {
  v1::BuildProgress progress;
  progress.set_done(built.builds());
  progress.set_reused(built.reused());
  progress.set_failed(static_cast<int>(built.failed().size()));
  return progress;
}

}  // namespace

void CountBuild(const BuildOutcome& outcome, ServerMetrics* metrics) {
  if (metrics == nullptr) return;
  (outcome.reused ? metrics->build_cache_hits : metrics->build_cache_misses)->Add();
  if (!outcome.reused)
    metrics->build_seconds.With({v1::Outcome_Name(outcome.result.outcome())})
        .Observe(outcome.result.seconds());
}

bool IsBuilt(const v1::Program& program, const v1::BuiltCode& built) {
  return std::all_of(program.launches().begin(), program.launches().end(),
                     [&](const v1::Launch& launch) { return built.binaries().contains(launch.binary()); });
}

v1::Program BuiltProgram(v1::Program program, const v1::BuiltCode& built) {
  for (v1::Launch& launch : *program.mutable_launches())
    launch.set_binary(built.binaries().at(launch.binary()));
  return program;
}

absl::Status BuildCandidates(const std::vector<int>& positions, v1::CandidateSet* set,
                             const PipelineContext& context, v1::BuiltCode* built) {
  const bool first = built->builds() == 0;
  std::vector<v1::BuildTask> tasks;
  std::set<std::string> wanted;
  const auto want = [&](const v1::Program& program) {
    for (const v1::Launch& launch : program.launches()) {
      const std::string& key = launch.binary();
      if (built->binaries().contains(key) || built->failed().contains(key) || !wanted.insert(key).second)
        continue;
      tasks.push_back(set->builds().at(key));
    }
  };
  if (first) {
    want(set->reference());
    for (const v1::Program& unfused : set->unfused()) want(unfused);
  }
  for (int position : positions) want(set->candidates(position).program());
  SetDeadlines(context, &tasks);
  const v1::BuildProgress before = ProgressOf(*built);
  const auto emit = [&](int done, int total, int reused, int failed) {
    v1::JobEvent event;
    v1::BuildProgress* progress = event.mutable_build();
    progress->set_done(before.done() + done);
    progress->set_total(before.done() + total);
    progress->set_reused(before.reused() + reused);
    progress->set_failed(before.failed() + failed);
    if (context.emit) context.emit(std::move(event));
  };
  if (!tasks.empty()) {
    FUSION_ASSIGN_OR_RETURN(auto outcomes,
                            context.dispatcher.Build(context.job, tasks, context.cancellation, emit));
    for (size_t i = 0; i < tasks.size(); ++i) {
      const v1::BuildResult& result = outcomes[i].result;
      built->set_builds(built->builds() + 1);
      if (outcomes[i].reused) built->set_reused(built->reused() + 1);
      CountBuild(outcomes[i], context.metrics);
      if (result.outcome() == v1::OK)
        (*built->mutable_binaries())[tasks[i].key()] = result.binary();
      else
        (*built->mutable_failed())[tasks[i].key()] = result;
    }
  }
  const auto first_failed = [&](const v1::Program& program) -> const v1::Launch* {
    for (const v1::Launch& launch : program.launches())
      if (built->failed().contains(launch.binary())) return &launch;
    return nullptr;
  };
  const auto not_built = [&](const char* what, const v1::Launch& launch) {
    const v1::BuildResult& result = built->failed().at(launch.binary());
    return absl::FailedPreconditionError(absl::StrCat(launch.kernel(), ", ", what, ", was not built (",
                                                      v1::Outcome_Name(result.outcome()), "):\n",
                                                      Excerpt(result.log())));
  };
  // A set that is only compiled has none.
  if (first && set->unfused_size() > 0) {
    if (const v1::Launch* launch = first_failed(set->reference()))
      return not_built("part of the f64 reference", *launch);
    auto& unfused = *set->mutable_unfused();
    const v1::Program best = unfused.at(0);
    unfused.erase(
        std::remove_if(unfused.begin(), unfused.end(),
                       [&](const v1::Program& program) { return first_failed(program) != nullptr; }),
        unfused.end());
    if (unfused.empty()) return not_built("an unfused kernel", *first_failed(best));
  }
  for (int position : positions) {
    v1::PlannedCandidate& candidate = *set->mutable_candidates(position);
    if (const v1::Launch* launch = first_failed(candidate.program())) {
      const v1::BuildResult& result = built->failed().at(launch->binary());
      candidate.mutable_description()->set_outcome(result.outcome());
      candidate.mutable_description()->set_message(
          absl::StrCat(launch->kernel(), ": ", Excerpt(result.log())));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> RebuildWhatIsLost(const v1::CandidateSet& set, const v1::BuiltCode& built,
                                       const PipelineContext& context) {
  std::vector<v1::BuildTask> lost;
  for (const auto& [key, digest] : built.binaries()) {
    FUSION_ASSIGN_OR_RETURN(bool there, context.store.HasBlob(digest));
    if (!there) lost.push_back(set.builds().at(key));
  }
  if (lost.empty()) return false;
  SetDeadlines(context, &lost);
  v1::JobEvent event;
  event.set_note(
      absl::StrCat("binaries that the build cache had and has lost: ", lost.size(), "; built again"));
  if (context.emit) context.emit(std::move(event));
  FUSION_ASSIGN_OR_RETURN(auto outcomes, context.dispatcher.Build(context.job, lost, context.cancellation));
  for (const BuildOutcome& outcome : outcomes) CountBuild(outcome, context.metrics);
  for (size_t i = 0; i < lost.size(); ++i) {
    const v1::BuildResult& result = outcomes[i].result;
    if (result.outcome() != v1::OK || result.binary() != built.binaries().at(lost[i].key())) return false;
  }
  return true;
}

}  // namespace fusion
