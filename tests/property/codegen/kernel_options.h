// What a kernel is made with, as labels, and a choice of kernels that has each label of a list of kernels.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "server/graph/graph.h"
#include "server/plan/plan.h"

namespace fusion::testing {

// "row_panel rows staged", "vector unrolled": the skeleton with each of its options, and those that make
// loops together. Of a cooperative fusion those of its sweeps, as "cooperative: ...", and its own.
std::set<std::string> OptionLabels(const Graph& graph, const FusionImplementation& implementation);

// Of `implementations` as few as have all labels, about: again and again the one with the most new ones. What
// *seen holds is no longer new, and what they have is added to it.
std::vector<FusionImplementation> WithAllOptions(const Graph& graph,
                                                 const std::vector<FusionImplementation>& implementations,
                                                 std::set<std::string>* seen);

}  // namespace fusion::testing
