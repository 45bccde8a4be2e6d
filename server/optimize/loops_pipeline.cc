#include "server/optimize/loops_pipeline.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "server/loop_kernels/exported_loops.h"
#include "server/loops/statement_checks.h"
#include "server/optimize/artifact_stage.h"
#include "server/optimize/build_stage.h"
#include "server/optimize/contest.h"
#include "server/optimize/device_choice.h"
#include "server/optimize/device_figures.h"
#include "server/optimize/input_files.h"
#include "server/optimize/loop_candidates.h"
#include "server/optimize/loop_choice.h"
#include "server/optimize/loop_submission.h"
#include "server/optimize/loop_trial.h"
#include "server/optimize/measure_stage.h"
#include "server/optimize/measurement_remarks.h"
#include "server/optimize/predicted_stage.h"
#include "server/optimize/stage_log.h"
#include "server/rank/rank.h"
#include "server/target/target.h"

namespace fusion {
namespace {

constexpr int kUsualCases = 30, kQuickCases = 3, kPredictedCases = 5;
// Cases wait to be timed for each candidate of the job: predictions of loops err more than those of graphs.
constexpr int kWaitingOfCandidate = 3;
// Standard deviation of log(measured / predicted) of cases of one program, as far as it is known before
// anything is measured.
constexpr double kDeviationOfCases = 0.7;

absl::StatusOr<DeviceDescription> DeviceOfLoops(const v1::SubmitRequest& request,
                                                const LoopSubmission& submission,
                                                const PipelineContext& context,
                                                std::vector<std::string>* notes) {
  std::string warning;
  if (request.no_measure()) {
    FUSION_ASSIGN_OR_RETURN(
        DeviceDescription described,
        RequestedOrDescribedDevice(request.target(), request.arch(), request.device(),
                                   PredictionPatience(request.target(), request.arch(), context), context,
                                   &warning, notes));
    if (!warning.empty()) notes->push_back(warning);
    return WithSteadyBandwidth(std::move(described), context.store);
  }
  FUSION_ASSIGN_OR_RETURN(DeviceDescription device,
                          RequestedDevice(request.target(), request.arch(), request.device(), kDevicePatience,
                                          context, &warning));
  FUSION_ASSIGN_OR_RETURN(device, WithSteadyBandwidth(std::move(device), context.store));
  if (!warning.empty()) {
    v1::JobEvent note;
    note.set_note("warning: " + warning);
    Emit(context, note);
  }
  FUSION_RETURN_IF_ERROR(CheckDeviceMemory(submission, device));
  return device;
}

// Workers build, then measure and verify, round by round until no case that is left can win.
absl::Status CompeteCases(const v1::SubmitRequest& request, const CostModel& model,
                          const PipelineContext& context, StageLog* stages, LoopCandidates* candidates,
                          v1::BuiltCode* built, v1::JobResult* result) {
  const int most = request.quick()             ? kQuickCases
                   : request.candidates() == 0 ? kUsualCases
                                               : request.candidates();
  std::vector<WaitingCandidate> waiting = AllCandidates(*candidates);
  for (WaitingCandidate& one : waiting) one.deviation = kDeviationOfCases;
  Contest contest({.most = most, .all = request.measure_all()}, std::move(waiting),
                  std::numeric_limits<double>::infinity(), model);
  v1::CandidateSet& set = candidates->set;
  const auto timer = MakeCandidateTimer(model.device(), request.quick(), *built, context, &set, result);
  int rounds = 0;
  for (std::vector<int> round = contest.NextRound(); !round.empty(); round = contest.NextRound()) {
    stages->Begin("build", ++rounds);
    FUSION_RETURN_IF_ERROR(BuildCandidates(round, &set, context, built));
    stages->Begin("measure", rounds);
    FUSION_RETURN_IF_ERROR(timer->TimeRound(round));
    contest.EndRound(set);
  }
  if (!request.quick()) stages->Begin("measure the finalists");
  FUSION_RETURN_IF_ERROR(timer->Finish());
  v1::SearchSummary* summary = result->mutable_search();
  summary->set_covers(set.candidates_size());
  summary->set_timed(contest.timed());
  summary->set_possible_gain(contest.PossibleGain());
  summary->mutable_prediction()->set_deviation(contest.Deviation());
  if (const std::string note = contest.NotTimed(set.candidates_size()); !note.empty())
    summary->add_notes(note);
  return absl::OkStatus();
}

absl::Status RankAndExportCases(const LoopSubmission& submission, const CostModel& model,
                                const LoopCandidates& candidates, const v1::BuiltCode& built,
                                const PipelineContext& context, v1::JobResult* result) {
  std::vector<v1::Candidate> ranked;
  for (const v1::PlannedCandidate& planned : candidates.set.candidates())
    if (planned.description().outcome() != v1::OUTCOME_UNSPECIFIED) ranked.push_back(planned.description());
  result->predicted() ? RankAsPredicted(&ranked) : RankCandidates(&ranked);
  const DeviceDescription& device = model.device();
  FUSION_ASSIGN_OR_RETURN(const LoopChooser chooser,
                          LoopChooser::Make(submission, model, candidates, ranked));
  const auto export_case = [&](int position, const std::string& description,
                               const std::string& verified) -> absl::StatusOr<v1::Artifact> {
    LoopChooser::Chosen chosen = chooser.Choose(position);
    return ExportLoops({.target = TargetOf(device.target()),
                        .arch = device.arch(),
                        .program = submission.program,
                        .mapped = submission.mapped,
                        .interface = submission.interface,
                        .variants = std::move(chosen.variants),
                        .table = std::move(chosen.table),
                        .least = candidates.least,
                        .sizes = submission.sizes,
                        .session = candidates.set.session(),
                        .file_name = submission.file_name,
                        .text = submission.text,
                        .description = description,
                        .verified = verified,
                        .names = ExportedNames(submission.code_name)});
  };
  FUSION_RETURN_IF_ERROR(
      StoreArtifacts(candidates.set, built, result->predicted(), ranked, device, export_case, context));
  result->mutable_candidates()->Assign(ranked.begin(), ranked.end());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::JobResult> LoopsPipeline(const v1::SubmitRequest& request,
                                            const PipelineContext& context) {
  const auto start = std::chrono::steady_clock::now();
  StageLog stages(context);
  stages.Begin("parse");
  FUSION_ASSIGN_OR_RETURN(const std::shared_ptr<const LoopSubmission> submission,
                          CheckLoopSubmission(request));
  FUSION_RETURN_IF_ERROR(HoldInputFiles(context.store, context.job, submission->files, TimeOfDay()));
  stages.Begin("choose a device");
  std::vector<std::string> notes;
  FUSION_ASSIGN_OR_RETURN(const DeviceDescription device,
                          DeviceOfLoops(request, *submission, context, &notes));

  stages.Begin("cases");
  const CostModel model(device);
  const int asked = request.candidates() == 0 ? kUsualCases : request.candidates();
  const int wanted = request.no_measure() ? std::min(asked, kPredictedCases) : kWaitingOfCandidate * asked;
  FUSION_ASSIGN_OR_RETURN(std::vector<LoopCase> cases,
                          FindLoopCases(*submission, model, wanted, !request.no_measure()));
  stages.Begin("codegen");
  FUSION_ASSIGN_OR_RETURN(LoopCandidates candidates, GenerateLoopCode(*submission, std::move(cases), device));
  Dump(context, "candidates.textproto", candidates.set.DebugString());

  v1::JobResult result;
  v1::BuiltCode built;
  result.set_cache(request.cache() == v1::WARM ? v1::WARM : v1::COLD);
  if (request.no_measure()) {
    stages.Begin("check what is predicted");
    result.set_predicted(true);
    FUSION_RETURN_IF_ERROR(CheckPredicted(
        [&](const DeviceDescription& host, std::vector<int>* positions) {
          return MakeLoopTrial(*submission, candidates.cases, device, host, positions);
        },
        device, wanted, context, &candidates.set, &built, &result));
    result.mutable_search()->set_covers(candidates.set.candidates_size());
    for (const std::string& note : notes) result.mutable_search()->add_notes(note);
  } else if (const absl::Status timed =
                 CompeteCases(request, model, context, &stages, &candidates, &built, &result);
             !timed.ok()) {
    if (!absl::IsFailedPrecondition(timed) || submission->mapped.asserted.empty()) return timed;
    return absl::FailedPreconditionError(absl::StrCat(
        "nothing but a pragma says that the iterations of ", absl::StrJoin(submission->mapped.asserted, ", "),
        " are independent, and they may not be: ", timed.message()));
  }
  stages.Begin("rank and export");
  FUSION_RETURN_IF_ERROR(RankAndExportCases(*submission, model, candidates, built, context, &result));
  *result.mutable_device() = device;
  *result.mutable_graph() = submission->summary;
  if (request.quick())
    result.add_remarks("a first answer: few cases, of which a few runs were timed and verified");
  else if (!result.predicted())
    DescribeReliability(&result);
  if (!result.predicted())
    result.add_remarks(
        "speed-ups are over the same loops with one iteration a thread and nothing in shared memory");
  if (!submission->files.empty())
    result.add_remarks(absl::StrCat("values of inputs: ",
                                    absl::StrJoin(submission->files, ", ",
                                                  [](std::string* out, const InputFile& file) {
                                                    absl::StrAppend(out, file.input, " from a file");
                                                  }),
                                    ", as asked"));
  for (const LoopNote& note : NotesOf(submission->program))
    result.add_remarks(NoteText(note, submission->file_name));
  result.set_builds(built.builds());
  result.set_builds_reused(built.reused());
  result.set_seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  Dump(context, "result.txt", result.DebugString());
  return result;
}

absl::StatusOr<v1::ExplainResponse> ExplainLoops(const v1::ExplainRequest& request,
                                                 const PipelineContext& context) {
  v1::SubmitRequest submit;
  *submit.mutable_source() = request.source();
  *submit.mutable_hints() = request.hints();
  FUSION_ASSIGN_OR_RETURN(const std::shared_ptr<const LoopSubmission> submission,
                          CheckLoopSubmission(submit));
  v1::ExplainResponse response;
  std::string warning;
  std::vector<std::string> notes;
  FUSION_ASSIGN_OR_RETURN(
      DeviceDescription device,
      RequestedOrDescribedDevice(request.target(), request.arch(), request.device(),
                                 std::chrono::milliseconds(0), context, &warning, &notes));
  FUSION_ASSIGN_OR_RETURN(device, WithSteadyBandwidth(std::move(device), context.store));
  const CostModel model(device);
  FUSION_ASSIGN_OR_RETURN(
      std::vector<LoopCase> cases,
      FindLoopCases(*submission, model, request.candidates() == 0 ? kUsualCases : request.candidates(),
                    false));
  FUSION_ASSIGN_OR_RETURN(const LoopCandidates candidates,
                          GenerateLoopCode(*submission, std::move(cases), device));
  for (int i = 0; i < candidates.set.candidates_size(); ++i) {
    v1::Candidate* candidate = response.add_candidates();
    *candidate = candidates.set.candidates(i).description();
    v1::KernelEstimate* estimate = candidate->add_estimates();
    estimate->set_seconds(candidate->predicted_seconds());
    if (candidate->kernels_size() == 0 || device.max_threads_per_multiprocessor() <= 0) continue;
    const v1::KernelSummary& kernel = candidate->kernels(0);
    const int registers = candidates.cases[static_cast<size_t>(i)].registers;
    estimate->set_registers(registers);
    estimate->set_occupancy(
        static_cast<double>(ResidentBlocks(device, kernel.threads(), registers, kernel.shared_bytes()) *
                            kernel.threads()) /
        device.max_threads_per_multiprocessor());
  }
  *response.mutable_graph() = submission->summary;
  *response.mutable_device() = device;
  response.mutable_search()->set_covers(response.candidates_size());
  for (const std::string& note : notes) response.mutable_search()->add_notes(note);
  if (!warning.empty()) response.mutable_search()->add_notes(warning);
  return response;
}

}  // namespace fusion
