#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/skeletons/block_vector/block_vector.h"
#include "server/skeletons/shared/description.h"
#include "server/skeletons/shared/loop_features.h"
#include "server/skeletons/shared/variant_text.h"
#include "server/skeletons/vector/vector.h"

namespace fusion {
namespace {

// Entries of a vector that one block is given at most: 16 a thread.
constexpr int64_t kMostEntries = 16384;
// Vectors of 16 bytes that a lane has of each value at most.
constexpr int kMostChunks = 8;

// The one length of all vectors; 0: they have several, or there is none.
int64_t LengthOf(const FusionShape& shape) {
  const Extent* extent = nullptr;
  for (int member : shape.members) {
    const auto& dimensions = shape.node(member).dimensions;
    if (dimensions.empty()) continue;
    if (dimensions.size() > 1 || (extent != nullptr && dimensions[0].extent != *extent)) return 0;
    extent = &dimensions[0].extent;
  }
  return extent == nullptr ? 0 : shape.Size(*extent);
}

class BlockVector final : public SkeletonOf<BlockVectorParameters> {
 public:
  const char* name() const override { return "vector"; }

  LoopRoles Roles(const Graph& graph, const NodeSet& nodes) const override {
    return RolesOfVectors(graph, nodes);
  }

  void Configure(const FusionProblem& problem, std::vector<FusionImplementation>* out,
                 NearestMiss*) const override {
    if (problem.sweeps.empty()) return;
    const Graph& graph = problem.graph;
    const FusionShape& sweep = problem.sweeps.front();
    const FusionShape shape =
        ShapeOfFusion(graph, problem.nodes, sweep.sizes, sweep.model,
                      {.feasible = true, .skeleton = this, .roles = RolesOfVectors(graph, problem.nodes)});
    if (shape.grid_reductions == 0) return;  // nothing to wait for, so the whole device may work
    const int64_t length = LengthOf(shape);
    if (length == 0 || length > kMostEntries) return;
    int vectors = 0;
    for (ValueId value : shape.loads) vectors += !graph.value(value).type.is_scalar();
    for (int threads : {1024, 512, 256}) {
      BlockVectorParameters parameters{.threads = threads, .vector_width = 16 / shape.entry_bytes};
      const int64_t per_chunk = int64_t{threads} * parameters.vector_width;
      if (length > kMostChunks * per_chunk) continue;
      parameters.chunks = static_cast<int>((length + per_chunk - 1) / per_chunk);
      KernelTraits traits = shape.Traits();
      traits.threads = threads;
      traits.blocks = 1;
      traits.launches = 1;
      traits.registers = 24 + MostLiveVectors(shape) * parameters.chunks * 4;
      if (ResidentBlocks(shape.model.device(), threads, traits.registers, 0) == 0) continue;
      traits.compute_efficiency = kLoopComputeEfficiency;
      // Address, load or store, guard.
      traits.instructions = shape.instructions + 3.0 * double(length) / parameters.vector_width *
                                                     double(vectors + shape.stores.size());
      // All loads are under way together.
      traits.bytes_in_flight_per_block = double(length) * vectors * shape.entry_bytes;
      traits.barrier_seconds = shape.grid_reductions * shape.profile().block_barrier_seconds().value();
      FusionImplementation implementation = shape.Base();
      implementation.parameters = parameters;
      implementation.estimate = shape.model.Estimate(traits);
      out->push_back(std::move(implementation));
    }
  }

  absl::StatusOr<FusionCode> Lower(LoweringContext& context) const override {
    return LowerBlockVector(context);
  }
  ResidualFeatures Features(const FusionImplementation& kernel) const override {
    const auto& p = kernel.As<BlockVectorParameters>();
    ResidualFeatures features = LoopFeatures(kernel.estimate, p.threads, p.vector_width, false);
    features[kIssueOfVectors] = LoopTerms(kernel.estimate, p.threads, p.vector_width).issue;
    features[kVectorsInOneBlock] = 1;
    return features;
  }
  // In the order of the structures of vectors.
  std::vector<int> Structure(const FusionImplementation&) const override { return {0, 1, 0, 0}; }
  std::string Describe(const Graph& graph, const FusionImplementation& kernel) const override {
    const auto& p = kernel.As<BlockVectorParameters>();
    return absl::StrCat(DescriptionStart(graph, kernel, p.threads), WordIfSeveral("V", p.vector_width), " C",
                        p.chunks);
  }
  std::string Variant(const FusionImplementation& kernel) const override {
    const auto& p = kernel.As<BlockVectorParameters>();
    return VariantText(*this, {.threads = p.threads, .vector_width = p.vector_width, .chunks = p.chunks}) +
           OrderText(kernel);
  }
};

}  // namespace

const Skeleton& BlockVectorSkeleton() {
  static const BlockVector kSkeleton;
  return kSkeleton;
}

}  // namespace fusion
