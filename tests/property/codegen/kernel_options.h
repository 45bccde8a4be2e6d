// The options that a kernel is made with, as labels, and a choice of kernels that has each label of a list of
// kernels.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "server/graph/graph.h"
#include "server/plan/plan.h"

namespace fusion::testing {

// "row_panel rows staged", "vector unrolled": the skeleton with each of its options, and those that make
// loops together. A cooperative fusion has those of its sweeps, as "cooperative: ...", and its own.
std::set<std::string> OptionLabels(const Graph& graph, const FusionImplementation& implementation);

// Chooses about as few of `implementations` as have all labels: again and again the one with the most new
// labels. Those in *seen are no longer new, and those of the chosen ones are added to it.
std::vector<FusionImplementation> WithAllOptions(const Graph& graph,
                                                 const std::vector<FusionImplementation>& implementations,
                                                 std::set<std::string>* seen);

}  // namespace fusion::testing
