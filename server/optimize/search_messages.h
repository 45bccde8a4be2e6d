// A search is asked and answers by messages: these functions turn values into messages and back.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/search.pb.h"
#include "server/graph/graph.h"
#include "server/model/cost_model.h"
#include "server/optimize/plans.h"

namespace fusion {

// In `memory` the model finds remembered kernels; it is asked for those of PredictionModel::families alone.
v1::PredictionModel ToMessage(const CostModel& model);
absl::StatusOr<CostModel> FromMessage(const v1::PredictionModel& message,
                                      std::shared_ptr<const KernelMemory> memory);

v1::RememberedKernels ToMessage(const std::vector<RememberedKernel>& kernels);
std::vector<RememberedKernel> FromMessage(const v1::RememberedKernels& message);

// The plans are those of WithoutUnused. DataLoss: a node, value or position is not there.
v1::FoundPlans ToMessage(const Plans& plans);
absl::StatusOr<Plans> FromMessage(const v1::FoundPlans& message, const Graph& graph);

}  // namespace fusion
