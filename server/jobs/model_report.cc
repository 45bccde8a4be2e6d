#include "server/jobs/model_report.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/rpc/status_conversion.h"
#include "base/status_macros.h"
#include "server/accuracy/accuracy.h"
#include "server/accuracy/plots.h"
#include "server/optimize/measure_stage.h"

namespace fusion {
namespace {

constexpr int kPageJobs = 100;

bool IsTime(double seconds) { return std::isfinite(seconds) && seconds > 0; }

const char* CacheName(v1::CacheState cache) { return cache == v1::WARM ? "warm" : "cold"; }

absl::Status CheckRequest(const v1::ReportModelRequest& request) {
  if (request.jobs() < 0 || request.jobs() > kMaximumReportedJobs)
    return InvalidField("jobs", absl::StrCat("must be between 1 and ", kMaximumReportedJobs,
                                             " (0: ", kDefaultReportedJobs, "), not ", request.jobs()));
  if (!v1::CacheState_IsValid(request.cache())) return InvalidField("cache", "must be COLD or WARM");
  return absl::OkStatus();
}

// Ranks that give an order stay. Else predicted times do; of equal ones the keys, for positions are by
// measured time.
void EnsureRanks(std::vector<PredictedCandidate>* candidates) {
  std::set<int> ranks;
  for (const PredictedCandidate& candidate : *candidates)
    if (candidate.predicted_rank >= 1) ranks.insert(candidate.predicted_rank);
  if (ranks.size() == candidates->size()) return;
  std::stable_sort(candidates->begin(), candidates->end(),
                   [](const PredictedCandidate& a, const PredictedCandidate& b) {
                     return std::tie(a.predicted_seconds, a.key) < std::tie(b.predicted_seconds, b.key);
                   });
  int rank = 0;
  for (PredictedCandidate& candidate : *candidates) candidate.predicted_rank = ++rank;
}

// The candidates that were predicted and measured; perhaps none.
PredictedGraph PredictionsOf(const v1::JobResult& result) {
  PredictedGraph graph;
  graph.name = result.graph().name();
  graph.sizes =
      SizesText(SizeValues(result.graph().size_values().begin(), result.graph().size_values().end()));
  graph.device = result.device().name();
  graph.cache = CacheName(result.cache());
  for (const v1::Candidate& candidate : result.candidates()) {
    const double median = candidate.measured().median();
    // Where a result says that a time is not steady, it says nothing of its prediction.
    if (!candidate.steady() && candidate.measured().quick() > 0) continue;
    if (candidate.outcome() != v1::OK || !IsTime(candidate.predicted_seconds()) || !IsTime(median)) continue;
    // Later searches of a job predict by what its first candidates took.
    if (candidate.search() > 0) continue;
    const double low = candidate.measured().low(), high = candidate.measured().high();
    graph.candidates.push_back({.key = candidate.key(),
                                .predicted_rank = candidate.predicted_rank(),
                                .predicted_seconds = candidate.predicted_seconds(),
                                .measured_seconds = median,
                                .low_seconds = IsTime(low) ? std::min(low, median) : median,
                                .high_seconds = IsTime(high) ? std::max(high, median) : median});
  }
  EnsureRanks(&graph.candidates);
  return graph;
}

bool Matches(const v1::ReportModelRequest& request, const PredictedGraph& graph) {
  return (request.device().empty() || request.device() == graph.device) &&
         (request.cache() == v1::CACHE_STATE_UNSPECIFIED || CacheName(request.cache()) == graph.cache);
}

struct Predictions {
  std::vector<std::string> jobs;  // of each graph
  std::vector<PredictedGraph> graphs;
  // These fields are of the jobs read that are left out.
  std::set<std::string> others;  // "NVIDIA H200 (cold)": of jobs that do not match
  int unreadable = 0;
};

absl::StatusOr<Predictions> ReadPredictions(const v1::ReportModelRequest& request, JobStore& store,
                                            const Principal& caller, const CancellationToken& cancellation) {
  const size_t limit = request.jobs() == 0 ? kDefaultReportedJobs : request.jobs();
  Predictions predictions;
  std::string page_token;
  do {
    FUSION_ASSIGN_OR_RETURN(JobPage page, caller.role == Role::kAdmin
                                              ? store.ListJobs(kPageJobs, page_token)
                                              : store.ListJobsOf(caller.name, kPageJobs, page_token));
    page_token = page.next_page_token;
    for (const JobRecord& listed : page.jobs) {
      if (predictions.graphs.size() == limit) return predictions;
      if (cancellation.cancelled()) return absl::CancelledError("the report is no longer wanted");
      if (listed.state != JobState::kSucceeded) continue;
      FUSION_ASSIGN_OR_RETURN(JobRecord job, store.GetJob(listed.id));
      v1::JobResult result;
      if (!result.ParseFromString(job.result)) {
        spdlog::warn("{}: its stored result cannot be read; reports on predictions leave it out", listed.id);
        ++predictions.unreadable;
        continue;
      }
      PredictedGraph graph = PredictionsOf(result);
      if (graph.candidates.empty()) continue;
      if (!Matches(request, graph)) {
        predictions.others.insert(absl::StrCat(graph.device, " (", graph.cache, ")"));
        continue;
      }
      predictions.jobs.push_back(listed.id);
      predictions.graphs.push_back(std::move(graph));
    }
  } while (!page_token.empty());
  return predictions;
}

absl::Status NothingFound(const v1::ReportModelRequest& request, const Predictions& predictions) {
  std::string message = "no job that SUCCEEDED has candidates with a predicted and a measured time";
  if (!request.device().empty()) absl::StrAppend(&message, " on device ", request.device());
  if (request.cache() != v1::CACHE_STATE_UNSPECIFIED)
    absl::StrAppend(&message, " ranked by ", CacheName(request.cache()), " times");
  if (predictions.unreadable > 0)
    absl::StrAppend(&message, "; ", predictions.unreadable,
                    predictions.unreadable == 1 ? " stored result" : " stored results", " cannot be read");
  if (!predictions.others.empty())
    return absl::NotFoundError(absl::StrCat(message, "; there are jobs on ",
                                            absl::StrJoin(predictions.others, ", "),
                                            ": ask for these, or run fusion-client submit first"));
  return absl::NotFoundError(absl::StrCat(message, "; run fusion-client submit first"));
}

void Fill(const Regret& regret, v1::PredictionRegret* message) {
  message->set_first(regret.first);
  message->set_first_3(regret.first_3);
  message->set_first_5(regret.first_5);
}

void Fill(const PredictedGraph& graph, const GraphAccuracy& accuracy, v1::GraphAccuracy* message) {
  message->set_graph(graph.name);
  message->set_sizes(graph.sizes);
  message->set_device(graph.device);
  message->set_cache(graph.cache == CacheName(v1::WARM) ? v1::WARM : v1::COLD);
  message->set_candidates(accuracy.candidates);
  message->set_median_absolute_error(accuracy.median_absolute_error);
  message->set_bias(accuracy.bias);
  if (accuracy.kendall_tau) message->set_kendall_tau(*accuracy.kendall_tau);
  for (int position : accuracy.fastest_positions) message->add_fastest_positions(position);
  message->set_best_position(accuracy.best_position);
  message->set_best_position_with_ties(accuracy.best_position_with_ties);
  Fill(accuracy.regret, message->mutable_regret());
}

void Fill(const AccuracySummary& summary, v1::ReportModelResponse* message) {
  message->set_candidates(summary.candidates);
  message->set_median_absolute_error(summary.median_absolute_error);
  if (summary.median_tau) message->set_median_kendall_tau(*summary.median_tau);
  if (summary.mean_tau) message->set_mean_kendall_tau(*summary.mean_tau);
  if (summary.min_tau) message->set_least_kendall_tau(*summary.min_tau);
  message->set_best_in_first_5(summary.best_in_first_5);
  message->set_best_in_first_5_with_ties(summary.best_in_first_5_with_ties);
  message->set_first_3_within_2_percent(summary.first_3_within_2_percent);
  Fill(summary.median_regret, message->mutable_median_regret());
  Fill(summary.max_regret, message->mutable_largest_regret());
}

absl::Status AddPlots(std::vector<PredictedGraph> graphs, v1::ReportModelResponse* response) {
  if (graphs.size() > kPlottedJobs) graphs.resize(kPlottedJobs);
  FUSION_ASSIGN_OR_RETURN(std::string measured, PlotPredictedAgainstMeasured(graphs));
  FUSION_ASSIGN_OR_RETURN(std::string convergence, PlotConvergence(graphs));
  response->set_measured_plot(std::move(measured));
  response->set_convergence_plot(std::move(convergence));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::ReportModelResponse> ReportModel(const v1::ReportModelRequest& request, JobStore& store,
                                                    const Principal& caller,
                                                    const CancellationToken& cancellation) {
  FUSION_RETURN_IF_ERROR(CheckRequest(request));
  FUSION_ASSIGN_OR_RETURN(Predictions predictions, ReadPredictions(request, store, caller, cancellation));
  if (predictions.graphs.empty()) return NothingFound(request, predictions);

  // Predictions that it would refuse were left out above.
  absl::StatusOr<Accuracy> accuracy = AssessPredictions(predictions.graphs);
  if (!accuracy.ok()) return absl::InternalError(accuracy.status().message());
  v1::ReportModelResponse response;
  for (size_t i = 0; i < predictions.graphs.size(); ++i) {
    v1::GraphAccuracy* message = response.add_graphs();
    message->set_job(predictions.jobs[i]);
    Fill(predictions.graphs[i], accuracy->graphs[i], message);
  }
  Fill(accuracy->summary, &response);
  if (!request.plots()) return response;
  if (absl::Status status = AddPlots(std::move(predictions.graphs), &response); !status.ok())
    return absl::InternalError(status.message());
  return response;
}

}  // namespace fusion
