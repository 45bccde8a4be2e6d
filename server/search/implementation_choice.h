// The implementations of one fusion: skeleton parameters and implementations of its functions, with predicted
// times.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/graph/graph.h"
#include "server/model/cost_model.h"
#include "server/plan/plan.h"

namespace fusion {

struct ImplementationOptions {
  int keep = 8;                // the best predicted ones of each fusion
  int max_combinations = 64;   // of function implementations within one fusion
  bool deterministic = false;  // nothing whose last bits differ from run to run (sums by atomic additions)
  // If set, fusions of several nodes keep only implementations for which it holds. Single nodes must remain:
  // they keep such implementations beside the others.
  std::function<bool(const FusionImplementation&)> wanted;
  // If set, it returns what is known of measured kernels that compute the nodes.
  std::function<FamilyTimes(const NodeSet&)> measured;
};

// Returns all that fit the device, best predicted first, at most `keep`; those predicted more than four times
// as slow as the best are dropped. Deterministic. Empty when no skeleton can compute the fusion or nothing
// fits; then *reason says why.
std::vector<FusionImplementation> ImplementFusion(const Graph& graph, const NodeSet& nodes,
                                                  const SizeValues& sizes, const CostModel& model,
                                                  const ImplementationOptions& options, std::string* reason);

}  // namespace fusion
