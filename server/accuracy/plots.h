// Two plots of predictions as SVG documents, 960 pixels wide and 616 high. A graph has a colour and a shape
// of marker, named on the right. Up to 35 graphs differ in these; the first 28 are named. Sizes, device and
// cache state stand in the heading when they are the same for all graphs, else with each graph.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/accuracy/accuracy.h"

namespace fusion {

// Every candidate at (measured, predicted time), both axes logarithmic and alike, with the diagonal on which
// exact predictions lie and the band of those within 10 % of the measured time. Errors: those of
// AssessPredictions. Pure; thread safe.
absl::StatusOr<std::string> PlotPredictedAgainstMeasured(const std::vector<PredictedGraph>& graphs);

// Convergence of the search: a step line of each graph's BestSoFar over the number of candidates measured,
// both axes logarithmic, with a marker wherever a faster one is found and at the end. Errors: those of
// AssessPredictions. Pure; thread safe.
absl::StatusOr<std::string> PlotConvergence(const std::vector<PredictedGraph>& graphs);

}  // namespace fusion
