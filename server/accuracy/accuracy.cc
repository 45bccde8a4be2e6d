#include "server/accuracy/accuracy.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "server/accuracy/kendall_tau.h"

namespace fusion {
namespace {

constexpr size_t kFastestShown = 5;  // as in Fousek 2010, table 5.1

// Returns the median: of an even number of values, the mean of the middle two. There is at least one value.
double Median(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  std::nth_element(values.begin(), values.begin() + middle, values.end());
  if (values.size() % 2 == 1) return values[middle];
  return (*std::max_element(values.begin(), values.begin() + middle) + values[middle]) / 2;
}

double AbsoluteError(const PredictedCandidate& candidate) {
  return std::fabs(candidate.predicted_seconds / candidate.measured_seconds - 1);
}

absl::Status CheckCandidate(const PredictedCandidate& candidate, std::set<int>* ranks) {
  const struct {
    const char* what;
    double seconds;
  } times[] = {{"predicted time", candidate.predicted_seconds},
               {"measured time", candidate.measured_seconds},
               {"low end of the measured interval", candidate.low_seconds},
               {"high end of the measured interval", candidate.high_seconds}};
  for (const auto& time : times)
    if (!std::isfinite(time.seconds) || time.seconds <= 0)
      return absl::InvalidArgumentError(
          absl::StrCat("the ", time.what, " must be finite and above 0 s, it is ", time.seconds));
  if (candidate.low_seconds > candidate.measured_seconds ||
      candidate.measured_seconds > candidate.high_seconds)
    return absl::InvalidArgumentError(
        absl::StrCat("the measured interval must hold the median: ", candidate.low_seconds, " to ",
                     candidate.high_seconds, " s does not hold ", candidate.measured_seconds));
  if (candidate.predicted_rank < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("predicted ranks count from 1, it is ", candidate.predicted_rank));
  if (!ranks->insert(candidate.predicted_rank).second)
    return absl::InvalidArgumentError(absl::StrCat(
        "each candidate has a predicted rank of its own, another has ", candidate.predicted_rank, " too"));
  return absl::OkStatus();
}

GraphAccuracy Assess(const PredictedGraph& graph) {
  const std::vector<int> order = PredictedOrder(graph);
  const int n = static_cast<int>(order.size());
  std::vector<double> predicted, measured, errors, logs;  // in predicted order
  for (int index : order) {
    const PredictedCandidate& candidate = graph.candidates[index];
    predicted.push_back(candidate.predicted_seconds);
    measured.push_back(candidate.measured_seconds);
    errors.push_back(AbsoluteError(candidate));
    logs.push_back(std::log(candidate.predicted_seconds) - std::log(candidate.measured_seconds));
  }
  GraphAccuracy accuracy;
  accuracy.candidates = n;
  accuracy.median_absolute_error = Median(errors);
  accuracy.bias = std::exp(Median(logs));
  accuracy.kendall_tau = KendallTauB(predicted, measured);

  std::vector<int> positions(n);
  std::iota(positions.begin(), positions.end(), 1);
  std::stable_sort(positions.begin(), positions.end(),
                   [&](int a, int b) { return measured[a - 1] < measured[b - 1]; });
  accuracy.best_position = positions.front();
  accuracy.fastest_positions.assign(positions.begin(),
                                    positions.begin() + std::min(positions.size(), kFastestShown));
  // Every interval holds its median, so the fastest one's cannot lie above another.
  const double best_high = graph.candidates[order[accuracy.best_position - 1]].high_seconds;
  accuracy.best_position_with_ties = accuracy.best_position;
  for (int position = accuracy.best_position - 1; position >= 1; --position)
    if (graph.candidates[order[position - 1]].low_seconds <= best_high)
      accuracy.best_position_with_ties = position;

  const std::vector<double> best_so_far = BestSoFar(graph);
  auto regret = [&](int first) { return best_so_far[std::min(first, n) - 1] - 1; };
  accuracy.regret = {regret(1), regret(3), regret(5)};
  return accuracy;
}

AccuracySummary Summarize(const std::vector<PredictedGraph>& graphs,
                          const std::vector<GraphAccuracy>& accuracies) {
  AccuracySummary summary;
  summary.graphs = static_cast<int>(graphs.size());
  std::vector<double> errors;
  for (const PredictedGraph& graph : graphs)
    for (const PredictedCandidate& candidate : graph.candidates) errors.push_back(AbsoluteError(candidate));
  summary.candidates = static_cast<int>(errors.size());
  summary.median_absolute_error = Median(std::move(errors));

  std::vector<double> taus;
  int strict = 0, with_ties = 0, within = 0;
  for (const GraphAccuracy& accuracy : accuracies) {
    if (accuracy.kendall_tau) taus.push_back(*accuracy.kendall_tau);
    strict += accuracy.best_position <= 5;
    with_ties += accuracy.best_position_with_ties <= 5;
    within += accuracy.regret.first_3 <= 0.02;
  }
  summary.graphs_with_tau = static_cast<int>(taus.size());
  if (!taus.empty()) {
    summary.median_tau = Median(taus);
    summary.mean_tau = std::accumulate(taus.begin(), taus.end(), 0.0) / static_cast<double>(taus.size());
    summary.min_tau = *std::min_element(taus.begin(), taus.end());
  }
  summary.best_in_first_5 = static_cast<double>(strict) / summary.graphs;
  summary.best_in_first_5_with_ties = static_cast<double>(with_ties) / summary.graphs;
  summary.first_3_within_2_percent = static_cast<double>(within) / summary.graphs;
  for (double Regret::*figure : {&Regret::first, &Regret::first_3, &Regret::first_5}) {
    std::vector<double> regrets;
    for (const GraphAccuracy& accuracy : accuracies) regrets.push_back(accuracy.regret.*figure);
    summary.max_regret.*figure = *std::max_element(regrets.begin(), regrets.end());
    summary.median_regret.*figure = Median(std::move(regrets));
  }
  return summary;
}

}  // namespace

absl::Status CheckPredictions(const std::vector<PredictedGraph>& graphs) {
  if (graphs.empty())
    return absl::InvalidArgumentError("there are no graphs whose predictions could be assessed");
  for (const PredictedGraph& graph : graphs) {
    if (graph.candidates.empty())
      return absl::InvalidArgumentError(
          absl::StrCat("no candidate was measured; leave the graph out: ", GraphLabel(graph)));
    std::set<int> ranks;
    for (const PredictedCandidate& candidate : graph.candidates)
      if (auto status = CheckCandidate(candidate, &ranks); !status.ok())
        return absl::InvalidArgumentError(
            absl::StrCat(GraphLabel(graph), ": candidate ", candidate.key, ": ", status.message()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Accuracy> AssessPredictions(const std::vector<PredictedGraph>& graphs) {
  FUSION_RETURN_IF_ERROR(CheckPredictions(graphs));
  Accuracy accuracy;
  for (const PredictedGraph& graph : graphs) accuracy.graphs.push_back(Assess(graph));
  accuracy.summary = Summarize(graphs, accuracy.graphs);
  return accuracy;
}

std::vector<int> PredictedOrder(const PredictedGraph& graph) {
  std::vector<int> order(graph.candidates.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return graph.candidates[a].predicted_rank < graph.candidates[b].predicted_rank;
  });
  return order;
}

std::vector<double> BestSoFar(const PredictedGraph& graph) {
  std::vector<double> best;
  for (int index : PredictedOrder(graph)) {
    const double seconds = graph.candidates[index].measured_seconds;
    best.push_back(best.empty() ? seconds : std::min(best.back(), seconds));
  }
  if (best.empty()) return best;
  const double fastest = best.back();
  for (double& seconds : best) seconds /= fastest;
  return best;
}

std::string GraphLabel(const PredictedGraph& graph) {
  std::string label;
  for (const std::string* part : {&graph.name, &graph.sizes, &graph.device, &graph.cache})
    if (!part->empty()) absl::StrAppend(&label, label.empty() ? "" : ", ", *part);
  return label;
}

}  // namespace fusion
