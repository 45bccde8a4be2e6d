// Kernels over vectors: one dimension (a flattened matrix counts as one), maps and reductions to scalars.
#pragma once

#include <optional>
#include <string>

#include "server/skeletons/skeleton.h"
#include "server/skeletons/vector/parameters.h"

namespace fusion {

const Skeleton& VectorSkeleton();

// Most values of one entry that are live at once, in the order of the nodes: what is loaded until it was read
// last, results until they were; what is only stored, at once; accumulators always.
int MostLiveVectors(const FusionShape& shape);

// One kernel with the parameters given, where blocks_per_multiprocessor is the most wanted and becomes what
// fits; none when not even one block fits. *out: what its estimate was made from.
std::optional<FusionImplementation> MakeVector(const FusionShape& shape, const VectorParameters& given,
                                               KernelTraits* out);

// What the skeletons of vectors and of scalars have in common.
absl::StatusOr<FusionCode> LowerVector(LoweringContext& context);
ResidualFeatures VectorFeatures(const FusionImplementation& kernel);
std::string DescribeVector(const Graph& graph, const FusionImplementation& kernel);
std::string VectorVariant(const FusionImplementation& kernel);

}  // namespace fusion
