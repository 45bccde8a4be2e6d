#include "server/skeletons/skeletons.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/graph/in_place.h"
#include "server/skeletons/block_vector/block_vector.h"
#include "server/skeletons/cooperative/cooperative.h"
#include "server/skeletons/element/element.h"
#include "server/skeletons/narrow_columns/narrow_columns.h"
#include "server/skeletons/row_panel/row_panel.h"
#include "server/skeletons/scalar/scalar.h"
#include "server/skeletons/shared/member_order.h"
#include "server/skeletons/vector/vector.h"

namespace fusion {

const std::vector<const Skeleton*>& Skeletons() {
  static const std::vector<const Skeleton*> kSkeletons = {
      &ElementSkeleton(),     &VectorSkeleton(), &RowPanelSkeleton(),     &CooperativeSkeleton(),
      &BlockVectorSkeleton(), &ScalarSkeleton(), &NarrowColumnsSkeleton()};
  return kSkeletons;
}

std::optional<SkeletonAnswer> Skeleton::Loop(const Graph&, const NodeSet&) const { return std::nullopt; }

LoopRoles Skeleton::Roles(const Graph&, const NodeSet&) const { return {}; }

FusionImplementation Skeleton::Reference(const FusionShape& shape) const { return shape.Base(); }

const std::vector<FusionImplementation>& Skeleton::Sweeps(const FusionImplementation&) const {
  static const std::vector<FusionImplementation> kNone;
  return kNone;
}

SkeletonAnswer ChooseSkeleton(const Graph& graph, const NodeSet& nodes) {
  bool mapped = false, collection = false;
  for (int member : nodes.Members()) {
    const Node& node = graph.node(NodeId{member});
    mapped |= node.mapped();
    collection |= !node.mapped() && !node.dimensions.empty();
  }
  if (mapped && collection) return {.reason = "mapped lists and whole collections do not share a loop"};
  if (std::string reason = WhyNotInPlace(graph, nodes); !reason.empty()) return {.reason = std::move(reason)};
  for (const Skeleton* skeleton : Skeletons())
    if (std::optional<SkeletonAnswer> answer = skeleton->Loop(graph, nodes)) return *std::move(answer);
  return {.reason = "no skeleton computes it"};
}

std::vector<std::pair<NodeSet, SkeletonAnswer>> SplitIntoSweeps(const Graph& graph, const NodeSet& nodes) {
  std::vector<std::pair<NodeSet, SkeletonAnswer>> sweeps;
  // Sweeps may change the order of nodes that do not depend on each other.
  if (!WhyNotInPlace(graph, nodes).empty()) return {};
  std::map<int, int> sweep_of;
  for (int member : nodes.Members()) {  // ascending ids are a topological order
    const Node& node = graph.node(NodeId{member});
    if (node.mapped()) return {};
    int sweep = 0;
    for (ValueId operand : node.operands) {
      const auto& producer = graph.value(operand).producer;
      if (producer && nodes.Contains(producer->value)) sweep = std::max(sweep, sweep_of.at(producer->value));
    }
    for (;; ++sweep) {
      if (sweep == kMaxSweeps) return {};
      if (sweep == static_cast<int>(sweeps.size())) sweeps.emplace_back();
      NodeSet extended = sweeps[sweep].first;
      extended.Add(member);
      SkeletonAnswer answer = ChooseSkeleton(graph, extended);
      if (!answer.feasible) {
        if (sweeps[sweep].first.Size() == 0) return {};
        continue;
      }
      sweeps[sweep] = {std::move(extended), std::move(answer)};
      break;
    }
    sweep_of[member] = sweep;
  }
  return sweeps;
}

Structure StructureOf(const FusionImplementation& implementation) {
  Structure structure = implementation.skeleton->Structure(implementation);
  const std::string_view name = implementation.skeleton->name();
  const std::vector<const Skeleton*>& all = Skeletons();
  const auto first = std::find_if(all.begin(), all.end(),
                                  [&](const Skeleton* skeleton) { return name == skeleton->name(); });
  structure.insert(structure.begin(), static_cast<int>(first - all.begin()));
  return structure;
}

std::string Describe(const Graph& graph, const FusionImplementation& implementation) {
  return implementation.skeleton->Describe(graph, implementation);
}

ResidualFeatures FeaturesOf(const FusionImplementation& implementation) {
  return implementation.skeleton->Features(implementation);
}

std::string UnprovedOrderText(const Graph& graph, const FusionImplementation& implementation) {
  for (const FusionImplementation& sweep : implementation.skeleton->Sweeps(implementation))
    if (std::string text = UnprovedOrderText(graph, sweep); !text.empty()) return text;
  const NodeSet& nodes = implementation.fusion.nodes;
  const MemberOrder order =
      OrderMembers(graph, nodes.Members(), implementation.skeleton->Roles(graph, nodes));
  if (order.proved_optimal) return "";
  return absl::StrCat(
      order.live, " values of an entry are live at once, in the best order found; no order has fewer than ",
      order.lower_bound);
}

FusionImplementation ReferenceImplementation(const Graph& graph, NodeId id, const SizeValues& sizes,
                                             const CostModel& model) {
  NodeSet nodes;
  nodes.Add(id.value);
  const FusionShape shape = ShapeOfFusion(graph, nodes, sizes, model, ChooseSkeleton(graph, nodes));
  return shape.skeleton->Reference(shape);
}

absl::StatusOr<FusionCode> LowerLoop(LoweringContext& context) {
  FUSION_ASSIGN_OR_RETURN(FusionCode code, context.implementation.skeleton->Lower(context));
  code.functions.insert(code.functions.end(), context.functions().begin(), context.functions().end());
  return code;
}

absl::StatusOr<FusionCode> LowerFusion(const Graph& graph, const FusionImplementation& implementation,
                                       const LoweringOptions& options) {
  LoweringContext context(graph, implementation, options);
  FUSION_ASSIGN_OR_RETURN(FusionCode code, LowerLoop(context));
  // The reference runs once for every job on a device, and is not timed.
  for (KernelLaunch& launch : code.launches) launch.kernel.rolled = options.force_f64;
  std::sort(code.functions.begin(), code.functions.end(),
            [](const ElementaryFunction* a, const ElementaryFunction* b) { return a->name < b->name; });
  code.functions.erase(std::unique(code.functions.begin(), code.functions.end()), code.functions.end());
  return code;
}

}  // namespace fusion
