#include "server/optimize/predicted_stage.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/codegen/code_library.h"
#include "server/codegen/verification.h"
#include "server/optimize/build_stage.h"
#include "server/optimize/measure_stage.h"
#include "server/skeletons/skeletons.h"
#include "server/target/target.h"

namespace fusion {
namespace {

// Lengths that no tile and no vector divides.
constexpr int64_t kTrialSizes[] = {61, 97, 131, 163, 197, 229};
// A run at such sizes takes microseconds; each is looked at.
constexpr int kTrialRuns = 3;
constexpr double kTrialSeconds = 1, kTrialRunSeconds = 20;
// The worker of this process takes some seconds to start.
constexpr std::chrono::seconds kWorkerPatience{30};

// Returns whether a worker builds for the target, or may when it has come.
bool SomeoneBuilds(v1::Target target, const Dispatcher& dispatcher) {
  if (dispatcher.only_worker_is_here()) return true;
  const std::vector<v1::Worker> workers = dispatcher.Workers();
  return std::any_of(workers.begin(), workers.end(), [&](const v1::Worker& worker) {
    return worker.connected() && !worker.draining() &&
           std::any_of(worker.builds().begin(), worker.builds().end(),
                       [&](const v1::BuildCapability& build) { return build.target() == target; });
  });
}

// Computes the candidates at `positions` on a host and takes over what came of it.
absl::Status TryOnHost(const TrialMaker& make_trial, std::vector<int> positions,
                       const PipelineContext& context, v1::CandidateSet* set) {
  FUSION_ASSIGN_OR_RETURN(
      const DeviceDescription host,
      context.dispatcher.ChooseDevice(
          v1::HOST, "",
          context.dispatcher.only_worker_is_here() ? kWorkerPatience : std::chrono::milliseconds(0),
          context.cancellation, context.job));
  FUSION_ASSIGN_OR_RETURN(v1::CandidateSet trial, make_trial(host, &positions));
  std::vector<int> all(positions.size());
  std::iota(all.begin(), all.end(), 0);
  v1::BuiltCode built;
  FUSION_RETURN_IF_ERROR(BuildCandidates(all, &trial, context, &built));

  v1::TimeTask task;
  *task.mutable_session() =
      SessionOf(trial.session(), BuiltProgram(trial.reference(), built), {}, context.job);
  std::vector<int> tried;  // of the positions, those whose code was built for the host
  for (size_t i = 0; i < positions.size(); ++i) {
    if (!IsBuilt(trial.candidates(static_cast<int>(i)).program(), built)) continue;
    *task.add_programs() = BuiltProgram(trial.candidates(static_cast<int>(i)).program(), built);
    tried.push_back(positions[i]);
  }
  v1::MeasurementMethod& method = *task.mutable_method();
  method.set_version(kMethodVersion);
  method.set_minimum_samples(kTrialRuns);
  method.set_maximum_samples(kTrialRuns);
  method.set_seconds_limit(kTrialSeconds);
  method.set_run_deadline_seconds(kTrialRunSeconds);
  method.set_cold_alone(true);
  method.set_thorough(true);
  task.set_device_uuid(host.uuid());
  absl::Status failure;
  FUSION_RETURN_IF_ERROR(context.dispatcher.Time(
      context.job, {task}, host, context.cancellation, [&](int, const v1::TimeResult& result, bool) {
        if (!result.failure().empty()) failure = absl::UnavailableError(result.failure());
        for (int i = 0; i < result.programs_size() && i < static_cast<int>(tried.size()); ++i) {
          const v1::ProgramMeasurement& measured = result.programs(i);
          v1::Candidate& candidate = *set->mutable_candidates(tried[i])->mutable_description();
          candidate.set_max_relative_error(measured.max_relative_error());
          candidate.set_tolerance(measured.tolerance());
          if (measured.outcome() == v1::OK) continue;
          candidate.set_outcome(measured.outcome());
          candidate.set_message(absl::StrCat("computed on ", host.name(), ": ", measured.message()));
        }
      }));
  return failure;
}

// Returns the kernels of candidates as they are for their device, printed for a host, at other sizes.
absl::StatusOr<v1::CandidateSet> MakeTrial(const Submission& submission, const Plans& plans,
                                           const DeviceDescription& device, const DeviceDescription& host,
                                           const std::vector<int>& positions) {
  const Graph& graph = *submission.graph;
  const SizeValues sizes = TrialSizes(submission.sizes);
  CodeLibrary library(graph, sizes, host, TargetOf(device.target()).simt());
  v1::CandidateSet set;
  const auto add = [&](const FusionImplementation& implementation,
                       std::vector<const CodeUnit*>* units) -> absl::Status {
    FUSION_ASSIGN_OR_RETURN(const CodeUnit* unit, library.Add(implementation, false));
    set.mutable_builds()->insert({unit->build.key(), unit->build});
    units->push_back(unit);
    return absl::OkStatus();
  };
  const CostModel model(host);
  std::vector<FusionImplementation> nodes;
  for (const Node& node : graph.nodes())
    nodes.push_back(ReferenceImplementation(graph, node.id, sizes, model));
  FUSION_ASSIGN_OR_RETURN(const std::vector<const CodeUnit*> reference, library.AddTogether(nodes, true));
  for (const CodeUnit* unit : reference) set.mutable_builds()->insert({unit->build.key(), unit->build});
  *set.mutable_session() = MakeSession(graph, sizes, TolerancesOf(submission));
  *set.mutable_reference() = library.ProgramOf(reference, "reference", true);
  for (int position : positions) {
    std::vector<const CodeUnit*> units;
    for (const FusionImplementation* implementation : ImplementationsOf(plans, position))
      FUSION_RETURN_IF_ERROR(add(*implementation, &units));
    *set.add_candidates()->mutable_program() =
        library.ProgramOf(units, absl::StrCat("candidate ", position + 1), false);
  }
  return set;
}

}  // namespace

SizeValues TrialSizes(const SizeValues& sizes) {
  std::set<int64_t> values;
  for (const auto& [name, value] : sizes) values.insert(value);
  SizeValues trial;
  for (const auto& [name, value] : sizes) {
    const size_t place = std::distance(values.begin(), values.find(value));
    trial[name] = std::min(value, kTrialSizes[std::min(place, std::size(kTrialSizes) - 1)]);
  }
  return trial;
}

absl::Status CheckPredicted(const Submission& submission, const Plans& plans, const DeviceDescription& device,
                            int most, const PipelineContext& context, v1::CandidateSet* set,
                            v1::BuiltCode* built, v1::JobResult* result) {
  return CheckPredicted(
      [&](const DeviceDescription& host, std::vector<int>* positions) {
        return MakeTrial(submission, plans, device, host, *positions);
      },
      device, most, context, set, built, result);
}

absl::Status CheckPredicted(const TrialMaker& make_trial, const DeviceDescription& device, int most,
                            const PipelineContext& context, v1::CandidateSet* set, v1::BuiltCode* built,
                            v1::JobResult* result) {
  std::vector<int> positions(std::min(most, set->candidates_size()));
  std::iota(positions.begin(), positions.end(), 0);
  // Neither is needed where nothing runs on the device.
  set->clear_reference();
  set->clear_unfused();
  const auto remark = [&](const char* what, const absl::Status& status) {
    result->add_remarks(absl::StrCat(what, ": ", status.message()));
  };
  absl::Status built_all = absl::UnavailableError("no connected worker builds for this target");
  if (SomeoneBuilds(device.target(), context.dispatcher))
    built_all = BuildCandidates(positions, set, context, built);
  const bool nobody_builds = absl::IsUnavailable(built_all) && context.dispatcher.running();
  if (nobody_builds) remark("the code was not compiled", built_all);
  if (!nobody_builds) FUSION_RETURN_IF_ERROR(built_all);

  std::vector<int> sound;
  for (int position : positions) {
    v1::Candidate& candidate = *set->mutable_candidates(position)->mutable_description();
    if (candidate.outcome() != v1::OUTCOME_UNSPECIFIED) continue;
    candidate.set_outcome(v1::OK);
    sound.push_back(position);
  }
  if (sound.empty()) return absl::OkStatus();
  const absl::Status tried = TryOnHost(make_trial, sound, context, set);
  if (!absl::IsUnavailable(tried) || !context.dispatcher.running()) return tried;
  remark("the results were not checked on a host", tried);
  return absl::OkStatus();
}

}  // namespace fusion
