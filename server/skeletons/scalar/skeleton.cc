#include <algorithm>

#include "server/skeletons/scalar/scalar.h"
#include "server/skeletons/vector/vector.h"

namespace fusion {
namespace {

class Scalar final : public VectorLikeSkeleton {
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
  void Configure(const FusionProblem& problem, std::vector<FusionImplementation>* out,
                 NearestMiss*) const override {
    if (!problem.loop || problem.loop->skeleton != this) return;
    KernelTraits traits;
    if (auto made = MakeVector(*problem.loop, {.threads = 32}, &traits)) out->push_back(*std::move(made));
  }
};

}  // namespace

const Skeleton& ScalarSkeleton() {
  static const Scalar kSkeleton;
  return kSkeleton;
}

}  // namespace fusion
