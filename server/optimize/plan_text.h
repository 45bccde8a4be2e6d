// Prints what a search found as text, for people: explain and --dump-dir.
#pragma once

#include <string>

#include "fusion/v1/optimizer.pb.h"
#include "server/model/cost_model.h"
#include "server/optimize/plans.h"

namespace fusion {

// Returns every fusion implementation with its estimate, one per line.
std::string PrintFusions(const Graph& graph, const SearchSpace& space);
// Returns the search as text: fusions by size, the best covers, the terms of the best one's estimate.
// `start_seconds` is part of what each cover is predicted to take.
std::string PrintPlans(const Graph& graph, const Plans& plans, double start_seconds);
// Adds to DescribeCover the terms of what each kernel is predicted to take.
v1::Candidate ExplainCover(const Graph& graph, const CostModel& model, const SearchSpace& space,
                           const CoverSolution& cover, int predicted_rank);

}  // namespace fusion
