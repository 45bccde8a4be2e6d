// Kernels over vectors: one dimension (a flattened matrix counts as one), maps and reductions to scalars.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/skeletons/skeleton.h"
#include "server/skeletons/vector/parameters.h"

namespace fusion {

const Skeleton& VectorSkeleton();

// Returns the most values of one entry that are live at once, in the order of the nodes: loaded values and
// results live until they were read last, results that are only stored for their node alone, accumulators
// always.
int MostLiveVectors(const FusionShape& shape);

// Returns KernelTraits::issue_overlap of a loop over vectors, of which so many blocks are on a multiprocessor
// and a thread has so many steps that no loop separates.
double IssueOverlap(double blocks, int steps);

// Returns one kernel with the parameters given, where blocks_per_multiprocessor is the most wanted and
// becomes what fits; none when not even one block fits. *out gets what its estimate was made from.
std::optional<FusionImplementation> MakeVector(const FusionShape& shape, const VectorParameters& given,
                                               KernelTraits* out);

absl::StatusOr<FusionCode> LowerVector(LoweringContext& context);

// Scalars alone are computed by the same loop without vectors.
class VectorLikeSkeleton : public SkeletonOf<VectorParameters> {
 public:
  FusionImplementation Reference(const FusionShape& shape) const final;
  absl::StatusOr<FusionCode> Lower(LoweringContext& context) const final { return LowerVector(context); }
  ResidualFeatures Features(const FusionImplementation& kernel) const final;
  std::vector<int> Structure(const FusionImplementation& kernel) const final;
  std::string Describe(const Graph& graph, const FusionImplementation& kernel) const final;
  std::string Variant(const FusionImplementation& kernel) const final;
};

}  // namespace fusion
