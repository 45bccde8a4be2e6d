// Predictions for tests.
#pragma once

#include <string>
#include <vector>

#include "server/accuracy/accuracy.h"

namespace fusion {

// In predicted order. `spread`: the interval reaches from measured * (1 - spread) to measured * (1 + spread).
struct PredictedTime {
  double predicted, measured, spread = 0;
};

inline PredictedGraph MakeGraph(const std::string& name, const std::vector<PredictedTime>& times) {
  PredictedGraph graph;
  graph.name = name;
  graph.sizes = "n=1024";
  graph.device = "device";
  graph.cache = "cold";
  int rank = 0;
  for (const auto& [predicted, measured, spread] : times) {
    ++rank;
    graph.candidates.push_back({.key = name + std::to_string(rank),
                                .predicted_rank = rank,
                                .predicted_seconds = predicted,
                                .measured_seconds = measured,
                                .low_seconds = measured * (1 - spread),
                                .high_seconds = measured * (1 + spread)});
  }
  return graph;
}

}  // namespace fusion
