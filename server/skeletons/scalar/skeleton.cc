#include <algorithm>

#include "server/skeletons/scalar/scalar.h"
#include "server/skeletons/vector/vector.h"

namespace fusion {
namespace {

class Scalar final : public SkeletonOf<VectorParameters> {
 public:
  const char* name() const override { return "scalar"; }

  std::optional<SkeletonAnswer> Loop(const Graph& graph, const NodeSet& nodes) const override {
    const std::vector<int> members = nodes.Members();
    const bool scalars = std::all_of(members.begin(), members.end(), [&](int member) {
      const Node& node = graph.node(NodeId{member});
      return !node.mapped() && node.dimensions.empty();
    });
    if (!scalars) return std::nullopt;
    return SkeletonAnswer{.feasible = true, .skeleton = this};
  }
  FusionImplementation Reference(const FusionShape& shape) const override {
    FusionImplementation implementation = shape.Base();
    implementation.parameters =
        VectorParameters{.threads = 256, .blocks_per_multiprocessor = shape.cuda() ? 8 : 4};
    return implementation;
  }
  void Configure(const FusionProblem& problem, std::vector<FusionImplementation>* out,
                 NearestMiss*) const override {
    if (!problem.loop || problem.loop->skeleton.skeleton != this) return;
    KernelTraits traits;
    if (auto made = MakeVector(*problem.loop, {.threads = 32}, &traits)) out->push_back(*std::move(made));
  }
  absl::StatusOr<FusionCode> Lower(LoweringContext& context) const override { return LowerVector(context); }
  ResidualFeatures Features(const FusionImplementation& kernel) const override {
    return VectorFeatures(kernel);
  }
  std::vector<int> Structure(const FusionImplementation&) const override { return {}; }
  std::string Describe(const Graph& graph, const FusionImplementation& kernel) const override {
    return DescribeVector(graph, kernel);
  }
  std::string Variant(const FusionImplementation& kernel) const override { return VectorVariant(kernel); }
};

}  // namespace

const Skeleton& ScalarSkeleton() {
  static const Scalar kSkeleton;
  return kSkeleton;
}

}  // namespace fusion
