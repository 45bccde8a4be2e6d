// Assesses how well predicted times agree with measured ones: errors, the order, and what trusting the
// prediction costs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fusion {

// A candidate that was measured. All times are in seconds.
struct PredictedCandidate {
  std::string key;
  int predicted_rank = 0;  // from 1; those of candidates that were not measured are missing
  double predicted_seconds = 0;
  double measured_seconds = 0;               // median
  double low_seconds = 0, high_seconds = 0;  // confidence interval of that median
};

// The candidates of one job: a graph at some sizes, on a device, with cold or warm caches. The texts are for
// people.
struct PredictedGraph {
  std::string name;
  std::string sizes;
  std::string device;
  std::string cache;
  std::vector<PredictedCandidate> candidates;  // in any order
};

// Measured time of the best of the first one, three and five in predicted order, over that of the fastest of
// all, minus 1. Where there are fewer candidates, the best of these counts.
struct Regret {
  double first = 0;
  double first_3 = 0;
  double first_5 = 0;
};

// Positions count the measured candidates from 1 in predicted order. (Fousek 2010, table 5.1, has them for
// two graphs, from 0.) Where medians are equal, the candidate predicted to be faster counts as the faster
// one, as in server/rank.
struct GraphAccuracy {
  int candidates = 0;
  double median_absolute_error = 0;  // median of |predicted / measured - 1|
  double bias = 1;  // median of log(predicted / measured), as a ratio: above 1, predicted times are too long
  // Tau-b of predicted and measured times; nothing when either are all equal.
  std::optional<double> kendall_tau;
  std::vector<int> fastest_positions;  // of the five fastest, fastest first; fewer when there are fewer
  int best_position = 0;               // of the fastest
  int best_position_with_ties = 0;     // the first whose interval overlaps that of the fastest
  Regret regret;
};

// Shares are of all graphs, those of few candidates too: the best of four is always among the first five.
struct AccuracySummary {
  int graphs = 0;
  int candidates = 0;
  double median_absolute_error = 0;  // over all candidates of all graphs
  int graphs_with_tau = 0;
  std::optional<double> median_tau, mean_tau, min_tau;  // over these
  double best_in_first_5 = 0;                           // share of graphs
  double best_in_first_5_with_ties = 0;                 // by best_position_with_ties
  double first_3_within_2_percent = 0;  // share of graphs whose regret of the first three is at most 0.02
  Regret median_regret, max_regret;     // each of the three figures by itself
};

struct Accuracy {
  std::vector<GraphAccuracy> graphs;  // in the order of the input
  AccuracySummary summary;
};

// InvalidArgument, naming graph and candidate: a time that is not finite or not above 0, a median outside its
// interval, a predicted rank below 1 or that two candidates have; a graph without candidates; no graphs.
// Pure, as all below; thread safe.
absl::StatusOr<Accuracy> AssessPredictions(const std::vector<PredictedGraph>& graphs);

// The errors of AssessPredictions alone.
absl::Status CheckPredictions(const std::vector<PredictedGraph>& graphs);

// Indices of the graph's candidates in predicted order.
std::vector<int> PredictedOrder(const PredictedGraph& graph);

// For k = 1, 2 ...: the fastest measured time among the first k in predicted order over that of the fastest
// of all. Descends to 1.
std::vector<double> BestSoFar(const PredictedGraph& graph);

// "bicgk, m=16384,n=16384, NVIDIA H200, cold", less what is empty.
std::string GraphLabel(const PredictedGraph& graph);

}  // namespace fusion
