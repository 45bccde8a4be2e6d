#include "server/optimize/optimize_pipeline.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/model/architecture.h"
#include "server/optimize/contest.h"
#include "server/optimize/device_figures.h"
#include "server/optimize/input_files.h"
#include "server/optimize/job_stages.h"
#include "server/optimize/measurement_remarks.h"
#include "server/optimize/plan_text.h"
#include "server/optimize/search_process.h"
#include "server/optimize/stage_log.h"
#include "server/optimize/stored_kernels.h"
#include "server/parse/parse.h"
#include "server/rank/rank.h"

namespace fusion {
namespace {

constexpr int kDefaultCandidates = 30;
// How long a job waits for a worker with a fitting device, unless it says so itself.
constexpr std::chrono::seconds kDevicePatience(30);

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Of all inputs, outputs and intermediate results.
double DataBytes(const Submission& submission) {
  double bytes = 0;
  for (const Value& value : submission.graph->values())
    if (!value.literal) bytes += static_cast<double>(StorageBytes(value, submission.sizes));
  return bytes;
}

int CandidateCount(int requested) { return requested == 0 ? kDefaultCandidates : requested; }

void Emit(const PipelineContext& context, v1::JobEvent event) {
  if (context.emit) context.emit(std::move(event));
}

std::chrono::milliseconds DevicePatience(const v1::JobLimits& limits) {
  if (limits.queue_seconds() <= 0) return kDevicePatience;
  return std::chrono::milliseconds(static_cast<int64_t>(limits.queue_seconds() * 1000));
}

// The device of a request. A device of another architecture than the one asked for is told by *warning.
absl::StatusOr<DeviceDescription> RequestedDevice(v1::Target target, const std::string& arch,
                                                  const std::string& kind, std::chrono::milliseconds patience,
                                                  const PipelineContext& context, std::string* warning) {
  FUSION_ASSIGN_OR_RETURN(auto choice, ChooseArch(target, arch));
  const auto choose = [&](std::chrono::milliseconds longest) {
    return context.dispatcher.ChooseDevice(target, arch, longest, context.cancellation, context.job,
                                           choice.arch, kind);
  };
  const double limit = patience.count() > 0 ? context.limits.queue_seconds() : 0;
  if (patience.count() > 0) patience = context.dispatcher.Patience(DevicePatience(context.limits));
  auto device = choose(std::chrono::milliseconds(0));
  if (absl::IsUnavailable(device.status()) && patience.count() > 0) {
    v1::JobEvent event;
    event.set_note(context.dispatcher.only_worker_is_here()
                       ? "the worker of this process is starting"
                       : absl::StrCat(device.status().message(), "; waiting for one for up to ",
                                      patience.count() / 1000, " s"));
    Emit(context, event);
    if (context.waits_for) context.waits_for(std::string(device.status().message()), patience);
    if (context.waits_for_device) context.waits_for_device(true);
    device = choose(patience);
    if (context.waits_for) context.waits_for("", std::chrono::milliseconds(0));
    if (context.waits_for_device) context.waits_for_device(false);
    // It may have no place of its own for a search, then.
    if (context.cancellation.cancelled()) return absl::CancelledError("cancelled while waiting for a device");
    // As of tasks that have waited for so long.
    if (limit > 0 && absl::IsUnavailable(device.status()) && context.dispatcher.running() &&
        !context.dispatcher.only_worker_is_here())
      return absl::DeadlineExceededError(device.status().message());
  }
  if (device.ok() && device->arch() != arch) *warning = choice.warning;
  return device;
}

// Of the devices that a worker has ever had, the one that was there last; for any target a CUDA device, if
// there was one.
absl::StatusOr<std::optional<DeviceDescription>> LastSeenDevice(v1::Target target, const std::string& arch,
                                                                Store& store) {
  FUSION_ASSIGN_OR_RETURN(auto records, store.Devices());
  std::sort(records.begin(), records.end(),
            [](const DeviceRecord& a, const DeviceRecord& b) { return a.last_seen > b.last_seen; });
  std::optional<DeviceDescription> found;
  for (const DeviceRecord& record : records) {
    DeviceDescription device;
    if (!device.ParseFromString(record.description) || (!arch.empty() && device.arch() != arch) ||
        (target != v1::TARGET_AUTO && device.target() != target))
      continue;
    if (device.target() == v1::CUDA) return device;
    if (!found) found = std::move(device);
  }
  return found;
}

// Those that are stored for the graph's functions. *notes: what was refused.
absl::StatusOr<RoutineTables> RoutineTablesOf(const DeviceDescription& device, const Submission& submission,
                                              const PipelineContext& context,
                                              std::vector<std::string>* notes) {
  if (!HasElements(*submission.graph)) return RoutineTables();
  return StoredRoutineTables(device, *context.catalog, context.store, notes);
}

// The model of the device with its tables of routine times, what earlier jobs taught of it and the kernels
// that they measured. *notes: what could not be used.
absl::StatusOr<CostModel> ModelOf(const DeviceDescription& device, const Submission& submission,
                                  v1::CacheState cache, RoutineTables routines,
                                  const PipelineContext& context, std::vector<std::string>* notes) {
  std::string unreadable;
  FUSION_ASSIGN_OR_RETURN(auto residual, LearnedResidual(device, cache, context, {}, &unreadable));
  if (!unreadable.empty()) notes->push_back(unreadable);
  FUSION_ASSIGN_OR_RETURN(auto memory, RememberedKernels(device, cache, context));
  return CostModel(device, cache == v1::WARM ? DataBytes(submission) : 0, std::move(residual),
                   std::move(routines), std::move(memory));
}

// On GPUs the programs of a routine are built and timed in seconds, by the way; host compilers would take
// minutes.
bool MeasuresMissingRoutines(const DeviceDescription& device) { return device.target() == v1::CUDA; }

// What a search is asked for by a job or an explanation.
template <typename Request>
v1::SearchRequest SearchRequestOf(const Request& request, const PipelineContext& context) {
  v1::SearchRequest search;
  *search.mutable_source() = request.source();
  *search.mutable_hints() = request.hints();
  search.set_candidates(CandidateCount(request.candidates()));
  search.set_deterministic(request.deterministic());
  search.set_fusions(request.limits().fusions());
  search.set_texts(!context.dump_directory.empty());
  return search;
}

absl::StatusOr<FoundPlans> Search(const v1::SearchRequest& request, const Submission& submission,
                                  const CostModel& model, const PipelineContext& context) {
  return context.searches.Search(request, *submission.graph, model, *context.catalog,
                                 [&] { return context.cancellation.cancelled(); });
}

void DumpSearch(const PipelineContext& context, const FoundPlans& found) {
  Dump(context, "fusions.txt", found.fusions_text);
  Dump(context, "cover.lp", found.plans.lp_text);
}

v1::JobResult BenchmarkResult(const DeviceDescription& device, const Submission& submission,
                              v1::RoutineTables routines, const std::vector<std::string>& notes,
                              double seconds) {
  routines.mutable_notes()->Assign(notes.begin(), notes.end());
  v1::JobResult result;
  *result.mutable_device() = device;
  *result.mutable_graph() = submission.summary;
  *result.mutable_routines() = std::move(routines);
  result.set_seconds(seconds);
  return result;
}

// On a GPU two rounds take a second, and the worst predictions are off by more than any bound, so that
// another search comes after so many candidates, and the bounds end no race before the usual number of them
// is timed. On the host each build takes a compiler a second.
constexpr int kFirstTimed = 16, kLeastTimed = kDefaultCandidates;

// After so many searches what is measured is the answer.
constexpr int kMostSearches = 4;
// Covers of a later search for each candidate of the job: among those that are nearly as good there are some
// of which little is known.
constexpr int kCoversOfSearch = 4;

}  // namespace

std::string WaitsForText(const std::string& what, std::chrono::milliseconds left) {
  return absl::StrCat(what, "; the job fails in ", (std::max<int64_t>(left.count(), 0) + 999) / 1000,
                      " s unless one comes");
}

std::string MissingDevice(const v1::SubmitRequest& request, const Dispatcher& dispatcher) {
  // The worker of an embedded server starts behind the submission.
  if (dispatcher.only_worker_is_here()) return "";
  const auto choice = ChooseArch(request.target(), request.arch());
  if (!choice.ok()) return "";
  const absl::Status found =
      dispatcher.FindDevice(request.target(), request.arch(), choice->arch, request.device());
  if (found.ok()) return "";
  return WaitsForText(std::string(found.message()), dispatcher.Patience(DevicePatience(request.limits())));
}

absl::StatusOr<v1::JobResult> OptimizePipeline(const v1::SubmitRequest& request,
                                               const PipelineContext& context) {
  const auto start = std::chrono::steady_clock::now();
  StageLog stages(context);

  // Parse: text or protobuf to a checked graph.
  stages.Begin("parse");
  FUSION_ASSIGN_OR_RETURN(auto submission, CheckSubmission(request, context.catalog));
  // Before anything is built for them.
  FUSION_RETURN_IF_ERROR(HoldInputFiles(context.store, context.job, submission, TimeOfDay()));
  Dump(context, "graph.fuse", PrintFuse(*submission.graph));

  // The device comes before the search: what is possible and what is fast depend on it.
  stages.Begin("choose a device");
  std::string warning;
  auto device =
      RequestedDevice(request.target(), request.arch(), request.device(), kDevicePatience, context, &warning);
  if (!device.ok()) return device.status();
  device = WithSteadyBandwidth(*std::move(device), context.store);
  if (!device.ok()) return device.status();
  if (!warning.empty()) {
    v1::JobEvent note;
    note.set_note("warning: " + warning);
    Emit(context, note);
  }
  if (!request.has_benchmark()) FUSION_RETURN_IF_ERROR(CheckDeviceMemory(submission, *device));

  // Routines: what the graph's functions of elements take on the device, as far as that is not known.
  stages.Begin("routines");
  std::vector<std::string> notes;
  FUSION_ASSIGN_OR_RETURN(auto tables, RoutineTablesOf(*device, submission, context, &notes));
  v1::RoutineTables routines;
  if (HasElements(*submission.graph) && (request.has_benchmark() || MeasuresMissingRoutines(*device))) {
    FUSION_ASSIGN_OR_RETURN(auto measured,
                            MeasureRoutines(submission, *device,
                                            request.benchmark().again() ? RoutineTables() : tables, context));
    routines = std::move(measured);
    for (const v1::RoutineTable& table : routines.tables())
      if (auto status = tables.Add(table); !status.ok())
        routines.add_notes(absl::StrCat("times of ", table.routine(), " are not used: ", status.message()));
    notes.insert(notes.end(), routines.notes().begin(), routines.notes().end());
  }
  if (request.has_benchmark())
    return BenchmarkResult(*device, submission, std::move(routines), notes, SecondsSince(start));

  const v1::CacheState cache = request.cache() == v1::WARM ? v1::WARM : v1::COLD;
  FUSION_ASSIGN_OR_RETURN(auto model,
                          ModelOf(*device, submission, cache, std::move(tables), context, &notes));

  // Search, model, cover: the best predicted covers, in order.
  stages.Begin("search");
  v1::JobEvent searching;
  searching.mutable_search();
  Emit(context, searching);
  v1::SearchRequest search = SearchRequestOf(request, context);
  FUSION_ASSIGN_OR_RETURN(auto found, Search(search, submission, model, context));
  DumpSearch(context, found);
  Plans* const plans = &found.plans;
  if (std::string refused = RefusedNote(model.memory()); !refused.empty())
    notes.push_back(std::move(refused));
  if (!warning.empty()) plans->summary.add_notes(warning);
  for (const std::string& text : notes) plans->summary.add_notes(text);
  *searching.mutable_search()->mutable_summary() = plans->summary;
  searching.mutable_search()->set_done(true);
  Emit(context, searching);

  // Codegen.
  stages.Begin("codegen");
  FUSION_ASSIGN_OR_RETURN(auto code, GenerateCode(submission, model, *plans));
  DumpCode(context, code);

  // Dispatch: workers build, then measure and verify, round by round until no candidate that is left can win.
  v1::JobResult result;
  result.set_cache(cache);
  result.set_floor_bytes(static_cast<double>(submission.graph->FloorBytes(submission.sizes)));
  result.set_floor_seconds(result.floor_bytes() / model.device().copy_bytes_per_second());
  Contest contest({.most = CandidateCount(request.candidates()),
                   .first = device->target() == v1::CUDA ? kFirstTimed : 0,
                   .least = device->target() == v1::CUDA ? kLeastTimed : 0,
                   .most_searches = IsSmall(*plans) ? kMostSearches : 1,
                   .all = request.measure_all(),
                   .floor_seconds = cache == v1::COLD ? model.FloorSeconds(result.floor_bytes()) : 0},
                  AllCandidates(*plans), plans->unseen_seconds, model);
  BuiltCode built;
  const auto timer = MakeCandidateTimer(submission, *device, built, context, &code, &result);
  // The same with what was measured so far: other covers may be better than they seemed.
  search.set_candidates(kCoversOfSearch * search.candidates());
  search.clear_texts();
  const auto search_again = [&]() -> absl::Status {
    FUSION_ASSIGN_OR_RETURN(auto taught, TaughtModel(submission, model, cache, *plans, code, context));
    FUSION_ASSIGN_OR_RETURN(auto again, Search(search, submission, taught, context));
    FUSION_ASSIGN_OR_RETURN(auto added, AddCandidates(submission, taught, again.plans, contest.left(),
                                                      contest.searches(), built, plans, &code));
    contest.Continue(std::move(added.candidates), added.unseen_seconds, taught);
    return absl::OkStatus();
  };
  int rounds = 0;
  for (std::vector<int> round = contest.NextRound(); !round.empty(); round = contest.NextRound()) {
    stages.Begin("build", ++rounds);
    FUSION_RETURN_IF_ERROR(BuildCandidates(round, &code, context, &built));
    stages.Begin("measure", rounds);
    FUSION_RETURN_IF_ERROR(timer->TimeRound(round));
    contest.EndRound(code.candidates);

    if (!contest.SearchesAgain()) continue;
    stages.Begin("search again", contest.searches());
    if (auto status = search_again(); !status.ok()) {
      plans->summary.add_notes(
          absl::StrCat("what was measured did not lead to further candidates: ", status.message()));
      contest.StopSearching();
    }
  }
  if (contest.searches() > 1) DumpCode(context, code);
  stages.Begin("measure the finalists");
  FUSION_RETURN_IF_ERROR(timer->Finish());
  plans->summary.set_covers(static_cast<int64_t>(code.candidates.size()));  // of all searches
  plans->summary.set_timed(contest.timed());
  plans->summary.set_possible_gain(contest.PossibleGain());
  plans->summary.mutable_prediction()->set_deviation(contest.Deviation());

  // Model: what was measured corrects the next predictions. The job is none the worse without that.
  stages.Begin("learn");
  if (auto status = LearnFromCandidates(submission, model, cache, *plans, code, context); !status.ok())
    plans->summary.add_notes(
        absl::StrCat("later predictions do not profit from this job: ", status.message()));

  // Rank.
  stages.Begin("rank and export");
  std::vector<v1::Candidate> candidates;
  for (const PlannedCandidate& planned : code.candidates)
    if (planned.candidate.outcome() != v1::OUTCOME_UNSPECIFIED) candidates.push_back(planned.candidate);
  if (const std::string note = contest.NotTimed(code.candidates.size()); !note.empty())
    plans->summary.add_notes(note);
  RankCandidates(&candidates);
  FUSION_RETURN_IF_ERROR(StoreArtifacts(submission, *device, *plans, code, built, candidates, context));

  *result.mutable_device() = *device;
  *result.mutable_graph() = submission.summary;
  *result.mutable_search() = plans->summary;
  routines.clear_tables();  // the benchmark lists them
  routines.clear_notes();
  if (HasElements(*submission.graph)) *result.mutable_routines() = std::move(routines);
  for (v1::Candidate& candidate : candidates) *result.add_candidates() = std::move(candidate);
  DescribeReliability(&result);
  for (const std::string& remark : RemarksOf(submission)) result.add_remarks(remark);
  result.set_builds(built.builds);
  result.set_builds_reused(built.reused);
  result.set_seconds(SecondsSince(start));
  Dump(context, "result.txt", result.DebugString());
  return result;
}

absl::StatusOr<v1::ExplainResponse> ExplainPipeline(const v1::ExplainRequest& request,
                                                    const PipelineContext& context) {
  FUSION_ASSIGN_OR_RETURN(auto submission, CheckSource(request.source(), context.catalog));

  v1::ExplainResponse response;
  std::string warning;
  auto device =
      RequestedDevice(request.target(), request.arch(), "", std::chrono::milliseconds(0), context, &warning);
  std::vector<std::string> notes;
  if (absl::IsUnavailable(device.status())) {
    FUSION_ASSIGN_OR_RETURN(auto choice, ChooseArch(request.target(), request.arch()));
    warning = choice.warning;
    FUSION_ASSIGN_OR_RETURN(auto seen, LastSeenDevice(request.target(), choice.arch, context.store));
    if (seen.has_value()) {
      device = WithDefaults(*std::move(seen));
      notes.push_back(
          absl::StrCat("no such device is connected; predicted for one that was: ", device->name()));
    } else {
      device = IsCudaArch(choice.arch) ? DescribedCudaDevice(choice.arch) : DescribedDevice(request.target());
      if (!choice.arch.empty()) device->set_arch(choice.arch);
      notes.push_back(absl::StrCat("no such device is connected; predicted for ", device->name()));
    }
  }
  if (!device.ok()) return device.status();
  device = WithSteadyBandwidth(*std::move(device), context.store);
  if (!device.ok()) return device.status();
  if (!warning.empty()) notes.push_back(warning);
  FUSION_ASSIGN_OR_RETURN(auto tables, RoutineTablesOf(*device, submission, context, &notes));
  FUSION_ASSIGN_OR_RETURN(auto model,
                          ModelOf(*device, submission, request.cache() == v1::WARM ? v1::WARM : v1::COLD,
                                  std::move(tables), context, &notes));
  v1::SearchRequest search = SearchRequestOf(request, context);
  *search.mutable_why() = request.why();
  FUSION_ASSIGN_OR_RETURN(auto found, Search(search, submission, model, context));
  Plans* const plans = &found.plans;
  if (request.why_size() == 2) *response.mutable_pair() = found.pair;
  if (std::string refused = RefusedNote(model.memory()); !refused.empty())
    notes.push_back(std::move(refused));
  for (const std::string& note : notes) plans->summary.add_notes(note);
  Dump(context, "graph.fuse", PrintFuse(*submission.graph));
  DumpSearch(context, found);

  *response.mutable_graph() = submission.summary;
  *response.mutable_search() = plans->summary;
  *response.mutable_device() = *device;
  response.set_floor_bytes(static_cast<double>(submission.graph->FloorBytes(submission.sizes)));
  response.set_floor_seconds(response.floor_bytes() / model.device().copy_bytes_per_second());
  for (size_t i = 0; i < plans->covers.covers.size(); ++i)
    *response.add_candidates() = ExplainCover(*submission.graph, model, plans->space, plans->covers.covers[i],
                                              static_cast<int>(i) + 1);
  response.set_text(PrintPlans(*submission.graph, *plans, model.StartSeconds()));
  if (request.sources()) {
    FUSION_ASSIGN_OR_RETURN(auto code, GenerateCode(submission, model, *plans));
    DumpCode(context, code);
    response.set_source(PrintCandidateSource(code.candidates.front(), device->target()));
  }
  return response;
}

}  // namespace fusion
