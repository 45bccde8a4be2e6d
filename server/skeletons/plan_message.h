// Fusion implementations become messages and are read back, with every field.
#pragma once

#include "absl/status/statusor.h"
#include "fusion/v1/search.pb.h"
#include "server/graph/graph.h"
#include "server/plan/plan.h"

namespace fusion {

v1::FusionImplementation ToMessage(const FusionImplementation& implementation);
// DataLoss: a node or value that the graph does not have, or a number that names nothing.
absl::StatusOr<FusionImplementation> FromMessage(const v1::FusionImplementation& message, const Graph& graph);

}  // namespace fusion
