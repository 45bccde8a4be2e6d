#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "server/skeletons/shared/description.h"
#include "server/skeletons/shared/loop_features.h"
#include "server/skeletons/shared/variant_text.h"
#include "server/skeletons/vector/vector.h"

namespace fusion {
namespace {

// Full matrices entry by entry: a matrix counts as one long vector.
bool AreFlatMatrices(const Graph& graph, const std::vector<int>& members) {
  for (int member : members) {
    const Node& node = graph.node(NodeId{member});
    if (node.dimensions.empty()) continue;
    if (node.dimensions.size() != 2 || node.is_reduction() || node.result_map != std::vector<int>{0, 1})
      return false;
    for (const auto& map : node.operand_maps)
      if (!map.empty() && map != std::vector<int>{0, 1}) return false;
    if (graph.value(node.result).leading_dimension) return false;
    for (ValueId operand : node.operands)
      if (graph.value(operand).leading_dimension) return false;
  }
  return true;
}

class Vector final : public VectorLikeSkeleton {
 public:
  const char* name() const override { return "vector"; }

  // A reduction's result is complete after the main loop, so only scalars may follow it.
  std::optional<SkeletonAnswer> Loop(const Graph& graph, const NodeSet& nodes) const override {
    const std::vector<int> members = nodes.Members();
    size_t dimensions = 0;
    for (int member : members) {
      const Node& node = graph.node(NodeId{member});
      if (node.mapped()) return std::nullopt;
      dimensions = std::max(dimensions, node.dimensions.size());
    }
    if (dimensions == 0 || (dimensions == 2 && !AreFlatMatrices(graph, members))) return std::nullopt;
    const std::vector<NodeDimension>* extents = nullptr;
    std::set<ValueId> late;  // results that are complete after the main loop only
    for (int member : members) {
      const Node& node = graph.node(NodeId{member});
      const std::string& name = graph.value(node.result).name;
      bool reads_late = false;
      for (ValueId operand : node.operands) reads_late |= late.count(operand) > 0;
      if (node.dimensions.empty()) {
        if (reads_late) late.insert(node.result);
        continue;
      }
      if (extents == nullptr) extents = &node.dimensions;
      for (size_t d = 0; d < node.dimensions.size(); ++d)
        if (node.dimensions[d].extent != (*extents)[d].extent)
          return SkeletonAnswer{.reason = absl::StrCat(name, " has another length than the other vectors")};
      if (reads_late)
        return SkeletonAnswer{
            .reason = absl::StrCat(name, " reads a reduction, which is complete only when the kernel ends")};
      if (node.is_reduction()) late.insert(node.result);
    }
    return SkeletonAnswer{.feasible = true, .skeleton = this, .roles = RolesOfVectors(graph, nodes)};
  }
  LoopRoles Roles(const Graph& graph, const NodeSet& nodes) const override {
    return RolesOfVectors(graph, nodes);
  }

  void Configure(const FusionProblem& problem, std::vector<FusionImplementation>* out,
                 NearestMiss*) const override {
    if (!problem.loop || problem.loop->skeleton != this) return;
    const FusionShape& shape = *problem.loop;
    const int l2_percent = L2Percent(shape, true);
    const auto add = [&](VectorParameters parameters) {
      KernelTraits traits;
      if (auto made = MakeVector(shape, parameters, &traits)) out->push_back(*std::move(made));
      parameters.l2_percent = parameters.vector_width * shape.entry_bytes == 16 ? l2_percent : 0;
      if (parameters.l2_percent == 0) return;
      if (auto made = MakeVector(shape, parameters, &traits)) out->push_back(*std::move(made));
    };
    if (!shape.simt()) {
      for (int threads : {1024, 256}) add({.threads = threads});
      return;
    }
    const int width = 16 / shape.entry_bytes;
    for (int blocks : {0, kAllThatFit}) {
      const auto add_unrolled = [&](int threads, int unroll) {
        add({.threads = threads,
             .vector_width = width,
             .unroll = unroll,
             .blocks_per_multiprocessor = blocks});
      };
      for (int threads : {256, 512, 128})
        for (int unroll : {1, 2, 4}) add_unrolled(threads, unroll);
      if (shape.grid_reductions > 0) add_unrolled(256, 8);
    }
    // 8 bytes, of which MakeVector says how good they are.
    add({.threads = 256, .vector_width = width / 2, .blocks_per_multiprocessor = 0});
    if (width > 2) add({.threads = 256, .blocks_per_multiprocessor = 0});
  }
};

}  // namespace

const Skeleton& VectorSkeleton() {
  static const Vector kSkeleton;
  return kSkeleton;
}

FusionImplementation VectorLikeSkeleton::Reference(const FusionShape& shape) const {
  FusionImplementation implementation = shape.Base();
  implementation.parameters =
      VectorParameters{.threads = 256, .blocks_per_multiprocessor = shape.simt() ? 8 : 4};
  return implementation;
}

std::vector<int> VectorLikeSkeleton::Structure(const FusionImplementation& kernel) const {
  const auto& p = kernel.As<VectorParameters>();
  constexpr int kInOneBlock = 0;
  return {p.blocks_per_multiprocessor == 0, kInOneBlock, p.atomic, p.l2_percent > 0};
}

ResidualFeatures VectorLikeSkeleton::Features(const FusionImplementation& kernel) const {
  const auto& p = kernel.As<VectorParameters>();
  ResidualFeatures features =
      LoopFeatures(kernel.estimate, p.threads, p.vector_width, p.blocks_per_multiprocessor == 0);
  features[kAtomicSums] = p.atomic;
  features[kVectorsAThread] = FeatureLogarithm(p.unroll, 1) / 2;
  features[kIssueOfVectors] = LoopTerms(kernel.estimate, p.threads, p.vector_width).issue;
  features[kShareKeptInL2] = p.l2_percent / 100.0;
  return features;
}

std::string VectorLikeSkeleton::Describe(const Graph& graph, const FusionImplementation& kernel) const {
  const auto& p = kernel.As<VectorParameters>();
  return absl::StrCat(DescriptionStart(graph, kernel, p.threads), WordIfSeveral("V", p.vector_width),
                      WordIfSeveral("U", p.unroll), p.atomic ? " atomic" : "", L2Word(p.l2_percent),
                      BlocksWord(p.blocks_per_multiprocessor));
}

std::string VectorLikeSkeleton::Variant(const FusionImplementation& kernel) const {
  const auto& p = kernel.As<VectorParameters>();
  return absl::StrCat(VariantText(*this, {.threads = p.threads,
                                          .vector_width = p.vector_width,
                                          .unroll = p.unroll,
                                          .blocks_per_multiprocessor = p.blocks_per_multiprocessor}),
                      p.atomic ? " atomic" : "", p.l2_percent > 0 ? absl::StrCat(" L2 ", p.l2_percent) : "",
                      OrderText(kernel));
}

}  // namespace fusion
