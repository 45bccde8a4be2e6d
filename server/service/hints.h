// What a person asks of the covers: values that one kernel computes, and values that different kernels compute.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/optimizer.pb.h"
#include "server/graph/graph.h"
#include "server/plan/node_set.h"

namespace fusion {

struct Hints {
  std::vector<NodeSet> together;  // a kernel computes all of them, or none
  std::vector<NodeSet> apart;     // a kernel computes one of them at most
  bool Allow(const NodeSet& kernel) const;
};

// InvalidArgument with the field, naming the value: one that the graph does not have or does not compute, or a group of fewer
// than two different ones.
absl::StatusOr<Hints> ResolveHints(const Graph& graph, const v1::FusionHints& hints);

// The node that computes a value. InvalidArgument: there is no such value, or it is an input.
absl::StatusOr<NodeId> NodeNamed(const Graph& graph, const std::string& value);

// The names of what the nodes compute, in their order.
std::vector<std::string> ResultNames(const Graph& graph, const NodeSet& nodes);

}  // namespace fusion
