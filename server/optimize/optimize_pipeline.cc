#include "server/optimize/optimize_pipeline.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/optimize/artifact_stage.h"
#include "server/optimize/build_stage.h"
#include "server/optimize/code_stage.h"
#include "server/optimize/contest.h"
#include "server/optimize/cover_export.h"
#include "server/optimize/device_choice.h"
#include "server/optimize/device_figures.h"
#include "server/optimize/input_files.h"
#include "server/optimize/learn_stage.h"
#include "server/optimize/loops_pipeline.h"
#include "server/optimize/measure_stage.h"
#include "server/optimize/measurement_remarks.h"
#include "server/optimize/plan_text.h"
#include "server/optimize/plans.h"
#include "server/optimize/predicted_stage.h"
#include "server/optimize/routine_stage.h"
#include "server/optimize/search_again.h"
#include "server/optimize/search_messages.h"
#include "server/optimize/search_process.h"
#include "server/optimize/stage_log.h"
#include "server/optimize/stored_kernels.h"
#include "server/optimize/submission.h"
#include "server/parse/parse.h"
#include "server/rank/rank.h"
#include "server/target/target.h"

namespace fusion {
namespace {

constexpr int kDefaultCandidates = 30;
double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// All inputs, outputs and intermediate results take so many bytes together.
double DataBytes(const Submission& submission) {
  double bytes = 0;
  for (const Value& value : submission.graph->values())
    if (!value.literal) bytes += static_cast<double>(StorageBytes(value, submission.sizes));
  return bytes;
}

int CandidateCount(int requested) { return requested == 0 ? kDefaultCandidates : requested; }
// A job that measures nothing, or that is to be quick, has no use for more; compilers take their time.
constexpr int kMostPredicted = 5, kMostQuick = 3;
int CandidateCount(const v1::SubmitRequest& request) {
  const int count = CandidateCount(request.candidates());
  return request.no_measure() ? std::min(count, kMostPredicted)
         : request.quick()    ? std::min(count, kMostQuick)
                              : count;
}
int CandidateCount(const v1::ExplainRequest& request) { return CandidateCount(request.candidates()); }

const v1::TargetProfile::Measuring& MeasuringOn(const DeviceDescription& device) {
  return TargetOf(device.target()).profile().measuring();
}

// Returns the search that a job or an explanation asks for.
template <typename Request>
v1::SearchRequest SearchRequestOf(const Request& request, const PipelineContext& context) {
  v1::SearchRequest search;
  *search.mutable_source() = request.source();
  *search.mutable_hints() = request.hints();
  search.set_candidates(CandidateCount(request));
  search.set_deterministic(request.deterministic());
  search.set_fusions(request.limits().fusions());
  search.set_texts(!context.dump_directory.empty());
  return search;
}

// Where rounds are quick, as on a GPU, two take a second, and the worst predictions are off by more than any
// bound, so that another search comes after so many candidates, and the bounds end no race before the usual
// number of them is timed. On the host each build takes a compiler a second.
constexpr int kFirstTimed = 16, kLeastTimed = kDefaultCandidates;

// After so many searches what is measured is the answer.
constexpr int kMostSearches = 4;
// Covers of a later search for each candidate of the job: among those that are nearly as good there are some
// of which little is known.
constexpr int kCoversOfSearch = 4;

// A job as it grows from stage to stage; an explanation ends before anything is built. Not copied: the timer
// of candidates points into it.
struct Optimization {
  const PipelineContext& context;
  Submission submission;
  DeviceDescription device;
  std::string warning;             // of the device
  std::vector<std::string> notes;  // what could not be used, for people
  v1::RoutineTables routines;      // that this job measured
  RoutineTables tables;            // all that are known
  v1::CacheState cache = v1::COLD;
  std::optional<CostModel> model;
  v1::SearchRequest search;  // what was searched for last
  Plans plans;               // those of later searches are added
  GeneratedCode code;
  v1::BuiltCode built;
  v1::JobResult result;
};

// The device of a job, for which it may wait.
absl::Status ChooseDevice(const v1::SubmitRequest& request, Optimization* job) {
  FUSION_ASSIGN_OR_RETURN(DeviceDescription device,
                          RequestedDevice(request.target(), request.arch(), request.device(), kDevicePatience,
                                          job->context, &job->warning));
  FUSION_ASSIGN_OR_RETURN(job->device, WithSteadyBandwidth(std::move(device), job->context.store));
  if (!job->warning.empty()) {
    v1::JobEvent note;
    note.set_note("warning: " + job->warning);
    Emit(job->context, note);
  }
  return request.has_benchmark() ? absl::OkStatus() : CheckDeviceMemory(job->submission, job->device);
}

// The device of a prediction, which needs none that is connected.
absl::Status ChooseOrDescribeDevice(v1::Target target, const std::string& arch, const std::string& kind,
                                    std::chrono::milliseconds patience, Optimization* job) {
  FUSION_ASSIGN_OR_RETURN(
      DeviceDescription device,
      RequestedOrDescribedDevice(target, arch, kind, patience, job->context, &job->warning, &job->notes));
  FUSION_ASSIGN_OR_RETURN(job->device, WithSteadyBandwidth(std::move(device), job->context.store));
  return absl::OkStatus();
}

// Finds what the routines of the graph's functions of elements take on the device, as far as that is known.
absl::Status FindRoutines(Optimization* job) {
  if (!HasElements(*job->submission.graph)) return absl::OkStatus();
  FUSION_ASSIGN_OR_RETURN(
      job->tables, StoredRoutineTables(job->device, *job->context.catalog, job->context.store, &job->notes));
  return absl::OkStatus();
}

// Measures the routines that are not known; `again`: all of them.
absl::Status MeasureMissingRoutines(bool again, Optimization* job) {
  FUSION_ASSIGN_OR_RETURN(
      job->routines,
      MeasureRoutines(job->submission, job->device, again ? RoutineTables() : job->tables, job->context));
  for (const v1::RoutineTable& table : job->routines.tables())
    if (absl::Status added = job->tables.Add(table); !added.ok())
      job->routines.add_notes(absl::StrCat("times of ", table.routine(), " are not used: ", added.message()));
  job->notes.insert(job->notes.end(), job->routines.notes().begin(), job->routines.notes().end());
  return absl::OkStatus();
}

// The model of the device with its tables of routine times, what earlier jobs taught of it and the kernels
// that they measured.
absl::Status MakeModel(v1::CacheState cache, Optimization* job) {
  job->cache = cache == v1::WARM ? v1::WARM : v1::COLD;
  std::string unreadable;
  FUSION_ASSIGN_OR_RETURN(Residual residual,
                          LearnedResidual(job->device, job->cache, job->context, {}, &unreadable));
  if (!unreadable.empty()) job->notes.push_back(unreadable);
  FUSION_ASSIGN_OR_RETURN(auto memory, RememberedKernels(job->device, job->cache, job->context));
  job->model.emplace(job->device, job->cache == v1::WARM ? DataBytes(job->submission) : 0,
                     std::move(residual), job->tables, std::move(memory));
  return absl::OkStatus();
}

absl::StatusOr<FoundPlans> Search(const Optimization& job, const CostModel& model) {
  const PipelineContext& context = job.context;
  return context.searches.Search(job.search, *job.submission.graph, model, *context.catalog,
                                 [&] { return context.cancellation.cancelled(); });
}

// The best predicted covers, in order. *pair: of SearchRequest::why.
absl::Status FindPlans(Optimization* job, v1::PairExplanation* pair = nullptr) {
  Dump(job->context, "model.textproto", ToMessage(*job->model).DebugString());
  FUSION_ASSIGN_OR_RETURN(FoundPlans found, Search(*job, *job->model));
  Dump(job->context, "plans.textproto", ToMessage(found.plans).DebugString());
  Dump(job->context, "fusions.txt", found.fusions_text);
  Dump(job->context, "cover.lp", found.plans.lp_text);
  job->plans = std::move(found.plans);
  if (pair != nullptr) *pair = std::move(found.pair);
  if (std::string refused = RefusedNote(job->model->memory()); !refused.empty())
    job->notes.push_back(std::move(refused));
  if (!job->warning.empty()) job->plans.summary.add_notes(job->warning);
  for (const std::string& note : job->notes) job->plans.summary.add_notes(note);
  return absl::OkStatus();
}

absl::Status MakeCode(Optimization* job, bool quick = false) {
  FUSION_ASSIGN_OR_RETURN(job->code, GenerateCode(job->submission, *job->model, job->plans));
  // The best predicted ways to compute the graph step by step: a first answer compares with one.
  if (auto* const unfused = job->code.set.mutable_unfused(); quick && unfused->size() > 1)
    unfused->DeleteSubrange(1, unfused->size() - 1);
  DumpCode(job->context, job->code);
  return absl::OkStatus();
}

double FloorBytes(const Optimization& job) {
  return static_cast<double>(job.submission.graph->FloorBytes(job.submission.sizes));
}

// Searches again with what was measured so far: other covers may be better than they seemed.
absl::Status SearchAgain(Optimization* job, Contest* contest) {
  FUSION_ASSIGN_OR_RETURN(const CostModel taught, TaughtModel(job->submission, *job->model, job->cache,
                                                              job->plans, job->code, job->context));
  FUSION_ASSIGN_OR_RETURN(const FoundPlans again, Search(*job, taught));
  FUSION_ASSIGN_OR_RETURN(
      Waiting added, AddCandidates(job->submission, taught, again.plans, contest->left(), contest->searches(),
                                   job->built, &job->plans, &job->code));
  contest->Continue(std::move(added.candidates), added.unseen_seconds, taught);
  return absl::OkStatus();
}

// Workers build, then measure and verify, round by round until no candidate that is left can win.
absl::Status Compete(const v1::SubmitRequest& request, Optimization* job, StageLog* stages) {
  const bool quick_rounds = MeasuringOn(job->device).quick_rounds();
  const double floor_bytes = FloorBytes(*job);
  Contest contest({.most = CandidateCount(request),
                   .first = quick_rounds ? kFirstTimed : 0,
                   .least = quick_rounds && !request.quick() ? kLeastTimed : 0,
                   .most_searches = IsSmall(job->plans) && !request.quick() ? kMostSearches : 1,
                   .all = request.measure_all(),
                   .floor_seconds = job->cache == v1::COLD ? job->model->FloorSeconds(floor_bytes) : 0},
                  AllCandidates(job->plans), job->plans.unseen_seconds, *job->model);
  job->result.set_cache(job->cache);  // the timer goes by it
  v1::CandidateSet& set = job->code.set;
  const auto timer =
      MakeCandidateTimer(job->device, request.quick(), job->built, job->context, &set, &job->result);
  job->search.set_candidates(kCoversOfSearch * job->search.candidates());
  job->search.clear_texts();
  v1::SearchSummary& summary = job->plans.summary;
  int rounds = 0;
  for (std::vector<int> round = contest.NextRound(); !round.empty(); round = contest.NextRound()) {
    stages->Begin("build", ++rounds);
    FUSION_RETURN_IF_ERROR(BuildCandidates(round, &set, job->context, &job->built));
    stages->Begin("measure", rounds);
    FUSION_RETURN_IF_ERROR(timer->TimeRound(round));
    contest.EndRound(set);

    if (!contest.SearchesAgain()) continue;
    stages->Begin("search again", contest.searches());
    if (absl::Status searched = SearchAgain(job, &contest); !searched.ok()) {
      summary.add_notes(
          absl::StrCat("what was measured did not lead to further candidates: ", searched.message()));
      contest.StopSearching();
    }
  }
  if (contest.searches() > 1) DumpCode(job->context, job->code);
  Dump(job->context, "builds.textproto", job->built.DebugString());
  if (!request.quick()) stages->Begin("measure the finalists");
  FUSION_RETURN_IF_ERROR(timer->Finish());
  Dump(job->context, "measured.textproto", set.DebugString());
  summary.set_covers(set.candidates_size());  // of all searches
  summary.set_timed(contest.timed());
  summary.set_possible_gain(contest.PossibleGain());
  summary.mutable_prediction()->set_deviation(contest.Deviation());
  if (const std::string note = contest.NotTimed(set.candidates_size()); !note.empty())
    summary.add_notes(note);
  return absl::OkStatus();
}

// The candidates that were tried, in their order, each with its exported folder in the store.
absl::Status RankAndExport(Optimization* job) {
  std::vector<v1::Candidate> candidates;
  for (const v1::PlannedCandidate& planned : job->code.set.candidates())
    if (planned.description().outcome() != v1::OUTCOME_UNSPECIFIED)
      candidates.push_back(planned.description());
  job->result.predicted() ? RankAsPredicted(&candidates) : RankCandidates(&candidates);
  FUSION_ASSIGN_OR_RETURN(const auto exporter, CoverExporter::Create(job->submission));
  const auto export_cover = [&](int position, const std::string& description, const std::string& verified) {
    return exporter.Export(job->device, ImplementationsOf(job->plans, position), description, verified);
  };
  FUSION_RETURN_IF_ERROR(StoreArtifacts(job->code.set, job->built, job->result.predicted(), candidates,
                                        job->device, export_cover, job->context));
  job->result.mutable_candidates()->Assign(candidates.begin(), candidates.end());
  return absl::OkStatus();
}

// Returns what a benchmark tells: the routines alone.
v1::JobResult BenchmarkResult(Optimization* job) {
  job->routines.mutable_notes()->Assign(job->notes.begin(), job->notes.end());
  v1::JobResult result;
  *result.mutable_device() = std::move(job->device);
  *result.mutable_graph() = std::move(job->submission.summary);
  *result.mutable_routines() = std::move(job->routines);
  return result;
}

v1::JobResult ResultOf(const v1::SubmitRequest& request, Optimization* job) {
  v1::JobResult& result = job->result;
  result.set_floor_bytes(FloorBytes(*job));
  result.set_floor_seconds(result.floor_bytes() / job->model->device().copy_bytes_per_second());
  *result.mutable_device() = job->device;
  *result.mutable_graph() = job->submission.summary;
  *result.mutable_search() = job->plans.summary;
  job->routines.clear_tables();  // the benchmark lists them
  job->routines.clear_notes();
  if (HasElements(*job->submission.graph)) *result.mutable_routines() = std::move(job->routines);
  if (request.quick())
    result.add_remarks(
        "a first answer: few candidates, of which a few runs were timed and verified, on two kinds of data; "
        "without --quick more are tried, and the fastest are timed again, interleaved, and verified on all "
        "kinds");
  else if (!result.predicted())
    DescribeReliability(&result);
  for (const std::string& remark : RemarksOf(job->submission)) result.add_remarks(remark);
  result.set_builds(job->built.builds());
  result.set_builds_reused(job->built.reused());
  return std::move(result);
}

}  // namespace

std::string WaitsForText(const std::string& what, std::chrono::milliseconds left) {
  return absl::StrCat(what, "; the job fails in ", (std::max<int64_t>(left.count(), 0) + 999) / 1000,
                      " s unless one comes");
}

std::string MissingDevice(const v1::SubmitRequest& request, const Dispatcher& dispatcher) {
  // The worker of an embedded server starts behind the submission.
  if (dispatcher.only_worker_is_here() || request.no_measure()) return "";
  const auto choice = ChooseArch(request.target(), request.arch());
  if (!choice.ok()) return "";
  const absl::Status found =
      dispatcher.FindDevice(request.target(), request.arch(), choice->arch, request.device());
  if (found.ok()) return "";
  return WaitsForText(std::string(found.message()), dispatcher.Patience(DevicePatience(request.limits())));
}

absl::StatusOr<v1::JobResult> OptimizePipeline(const v1::SubmitRequest& request,
                                               const PipelineContext& context) {
  if (request.source().has_loops()) return LoopsPipeline(request, context);
  const auto start = std::chrono::steady_clock::now();
  StageLog stages(context);
  Optimization job{.context = context};

  stages.Begin("parse");
  FUSION_ASSIGN_OR_RETURN(job.submission, CheckSubmission(request, context.catalog));
  // Before anything is built for them.
  FUSION_RETURN_IF_ERROR(
      HoldInputFiles(context.store, context.job, InputFilesOf(job.submission), TimeOfDay()));
  Dump(context, "graph.fuse", PrintFuse(*job.submission.graph));

  // The device comes before the search: what is possible and what is fast depend on it.
  stages.Begin("choose a device");
  FUSION_RETURN_IF_ERROR(
      request.no_measure()
          ? ChooseOrDescribeDevice(request.target(), request.arch(), request.device(),
                                   PredictionPatience(request.target(), request.arch(), context), &job)
          : ChooseDevice(request, &job));

  stages.Begin("routines");
  FUSION_RETURN_IF_ERROR(FindRoutines(&job));
  if (HasElements(*job.submission.graph) && !request.no_measure() && !request.quick() &&
      (request.has_benchmark() || MeasuringOn(job.device).quick_rounds()))
    FUSION_RETURN_IF_ERROR(MeasureMissingRoutines(request.benchmark().again(), &job));
  if (request.has_benchmark()) {
    v1::JobResult result = BenchmarkResult(&job);
    result.set_seconds(SecondsSince(start));
    return result;
  }

  FUSION_RETURN_IF_ERROR(MakeModel(request.cache(), &job));
  stages.Begin("search");
  v1::JobEvent searching;
  searching.mutable_search();
  Emit(context, searching);
  job.search = SearchRequestOf(request, context);
  FUSION_RETURN_IF_ERROR(FindPlans(&job));
  *searching.mutable_search()->mutable_summary() = job.plans.summary;
  searching.mutable_search()->set_done(true);
  Emit(context, searching);

  stages.Begin("codegen");
  FUSION_RETURN_IF_ERROR(MakeCode(&job, request.quick()));
  if (request.no_measure()) {
    stages.Begin("check what is predicted");
    job.result.set_predicted(true);
    job.result.set_cache(job.cache);
    FUSION_RETURN_IF_ERROR(CheckPredicted(job.submission, job.plans, job.device, CandidateCount(request),
                                          context, &job.code.set, &job.built, &job.result));
  } else {
    FUSION_RETURN_IF_ERROR(Compete(request, &job, &stages));
    // Measured times correct the next predictions. The job is none the worse without that.
    stages.Begin("learn");
    if (absl::Status learned =
            LearnFromCandidates(job.submission, *job.model, job.cache, job.plans, job.code, context);
        !learned.ok())
      job.plans.summary.add_notes(
          absl::StrCat("later predictions do not profit from this job: ", learned.message()));
  }

  stages.Begin("rank and export");
  FUSION_RETURN_IF_ERROR(RankAndExport(&job));
  v1::JobResult result = ResultOf(request, &job);
  result.set_seconds(SecondsSince(start));
  Dump(context, "result.txt", result.DebugString());
  return result;
}

absl::StatusOr<v1::ExplainResponse> ExplainPipeline(const v1::ExplainRequest& request,
                                                    const PipelineContext& context) {
  if (request.source().has_loops()) return ExplainLoops(request, context);
  Optimization job{.context = context};
  FUSION_ASSIGN_OR_RETURN(job.submission, CheckSource(request.source(), context.catalog));
  Dump(context, "graph.fuse", PrintFuse(*job.submission.graph));
  FUSION_RETURN_IF_ERROR(ChooseOrDescribeDevice(request.target(), request.arch(), request.device(),
                                                std::chrono::milliseconds(0), &job));
  FUSION_RETURN_IF_ERROR(FindRoutines(&job));
  FUSION_RETURN_IF_ERROR(MakeModel(request.cache(), &job));
  v1::ExplainResponse response;
  job.search = SearchRequestOf(request, context);
  *job.search.mutable_why() = request.why();
  FUSION_RETURN_IF_ERROR(FindPlans(&job, request.why_size() == 2 ? response.mutable_pair() : nullptr));

  const Graph& graph = *job.submission.graph;
  *response.mutable_graph() = job.submission.summary;
  *response.mutable_search() = job.plans.summary;
  *response.mutable_device() = job.device;
  response.set_floor_bytes(FloorBytes(job));
  response.set_floor_seconds(response.floor_bytes() / job.model->device().copy_bytes_per_second());
  int rank = 0;
  for (const CoverSolution& cover : job.plans.covers.covers)
    *response.add_candidates() = ExplainCover(graph, *job.model, job.plans.space, cover, ++rank);
  response.set_text(PrintPlans(graph, job.plans, job.model->StartSeconds()));
  if (request.sources()) {
    FUSION_RETURN_IF_ERROR(MakeCode(&job));
    response.set_source(PrintCandidateSource(job.code.units.front(), job.device.target()));
  }
  return response;
}

}  // namespace fusion
