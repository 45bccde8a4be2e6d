#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/skeletons/element/element.h"
#include "server/skeletons/shared/description.h"
#include "server/skeletons/shared/loop_features.h"
#include "server/skeletons/shared/variant_text.h"

namespace fusion {
namespace {

class Element final : public SkeletonOf<ElementParameters> {
 public:
  const char* name() const override { return "element"; }

  // Every node works on mapped elements, or on scalars known before the kernel.
  std::optional<SkeletonAnswer> Loop(const Graph& graph, const NodeSet& nodes) const override {
    const std::vector<int> members = nodes.Members();
    const auto any = [&](auto holds) {
      return std::any_of(members.begin(), members.end(),
                         [&](int member) { return holds(graph.node(NodeId{member})); });
    };
    if (!any([](const Node& node) { return node.mapped(); })) return std::nullopt;
    if (any([](const Node& node) { return node.is_reduction(); }))
      return SkeletonAnswer{.reason = "a reduction over mapped lists has no element skeleton"};
    return SkeletonAnswer{.feasible = true, .skeleton = this};
  }
  FusionImplementation Reference(const FusionShape& shape) const override {
    FusionImplementation implementation = shape.Base();
    ElementParameters parameters{
        .threads = 64, .elements_per_block = 64, .blocks_per_multiprocessor = shape.simt() ? 8 : 4};
    parameters.choices.assign(implementation.order.size(), 0);
    implementation.parameters = std::move(parameters);
    PlaceElementValues(shape, &implementation);
    return implementation;
  }
  void Configure(const FusionProblem& problem, std::vector<FusionImplementation>* out,
                 NearestMiss* miss) const override {
    if (problem.loop && problem.loop->skeleton == this)
      ConfigureElement(*problem.loop, problem.max_combinations, out, miss);
  }
  absl::StatusOr<FusionCode> Lower(LoweringContext& context) const override { return LowerElement(context); }

  ResidualFeatures Features(const FusionImplementation& kernel) const override {
    const auto& p = kernel.As<ElementParameters>();
    const RunTimeEstimate& e = kernel.estimate;
    const FeatureTerms terms(e);
    ResidualFeatures features{};
    features[kEveryElementKernel] = 1;
    features[kElementsStaged] = p.load_path == LoadPath::kStaged;
    features[kElementsOneTile] = p.blocks_per_multiprocessor == 0;
    features[kElementsSeveralThreads] =
        std::any_of(p.choices.begin(), p.choices.end(), [](int choice) { return choice > 0; });
    features[kElementsComputation] = terms.Share(e.compute_seconds);
    features[kElementsLaunches] = terms.Share(e.launch_seconds);
    features[kElementsLowOccupancy] = 1 - e.occupancy;
    features[kElementsThreads] = FeatureLogarithm(p.threads, 256) / 2;
    features[kElementsRegisters] = terms.registers;
    features[kElementsShort] = terms.is_short;
    features[kElementsTile] = FeatureLogarithm(p.elements_per_block, 32) / 3;
    features[kElementsSharedMemory] = terms.shared;
    features[kElementsMeasuredRoutines] = e.measured_routines;
    features[kElementsOneAfterTheOther] = terms.total_seconds > 0 ? e.alone_seconds / terms.total_seconds : 0;
    features[kElementsExchanged] = p.load_path == LoadPath::kExchanged;
    return features;
  }
  // The last number: 0 when a thread computes each element; else which of its ways, if all functions have
  // several threads for an element; else 1.
  std::vector<int> Structure(const FusionImplementation& kernel) const override {
    const auto& p = kernel.As<ElementParameters>();
    const auto [least, most] = std::minmax_element(p.choices.begin(), p.choices.end());
    const int several_threads = *most == 0 ? 0 : *least > 0 ? *most : 1;
    return {static_cast<int>(p.load_path), p.blocks_per_multiprocessor == 0, several_threads};
  }

  std::string Describe(const Graph& graph, const FusionImplementation& kernel) const override {
    const auto& p = kernel.As<ElementParameters>();
    std::string text = absl::StrCat(DescriptionStart(graph, kernel, p.threads), " E", p.elements_per_block,
                                    LoadPathWord(p.load_path), BlocksWord(p.blocks_per_multiprocessor));
    std::vector<std::string> choices;
    bool any = false;
    for (size_t i = 0; i < kernel.order.size(); ++i) {
      const Node& node = graph.node(kernel.order[i]);
      const bool thread = GranularityOf(node, p.choices[i]) == v1::THREAD;
      any |= !thread;
      choices.push_back(thread ? "thread"
                        : node.overload->form == v1::ELEMENT
                            ? node.overload->implementations[p.choices[i]].routine
                            : "entry");
    }
    if (any) absl::StrAppend(&text, " [", absl::StrJoin(choices, ","), "]");
    return text;
  }
  std::string Variant(const FusionImplementation& kernel) const override {
    const auto& p = kernel.As<ElementParameters>();
    std::string text = VariantText(*this, {.threads = p.threads,
                                           .elements_per_block = p.elements_per_block,
                                           .blocks_per_multiprocessor = p.blocks_per_multiprocessor,
                                           .load_path = p.load_path});
    if (p.load_repeats > 1 || p.compute_repeats > 1)
      absl::StrAppend(&text, " repeats ", p.load_repeats, ",", p.compute_repeats);
    text += OrderText(kernel);
    if (std::any_of(p.choices.begin(), p.choices.end(), [](int choice) { return choice > 0; }))
      absl::StrAppend(&text, " [", absl::StrJoin(p.choices, ","), "]");
    return text;
  }
};

}  // namespace

const Skeleton& ElementSkeleton() {
  static const Element kSkeleton;
  return kSkeleton;
}

v1::Granularity GranularityOf(const Node& node, int choice) {
  if (node.overload->form == v1::ELEMENT) return node.overload->implementations[choice].granularity;
  return choice == 0 ? v1::THREAD : v1::SUB_WARP;
}

bool ByOneThread(const Node& node, int choice) { return GranularityOf(node, choice) == v1::THREAD; }

int64_t SharedElementStride(int entries, int entry_bytes) {
  const int64_t bytes = int64_t{entries} * entry_bytes;
  return bytes % 32 == 0 ? entries + 16 / entry_bytes : entries;
}

int ExchangeableUnits(const Value& value) {
  const int bytes = value.type.element_entries() * DataTypeBytes(value.type.data_type), units = bytes / 16;
  return value.type.mapped && bytes % 16 == 0 && (units == 2 || units == 4 || units == 8) ? units : 1;
}

int ExchangedUnits(const Graph& graph, const FusionImplementation& kernel) {
  int units = 1;
  for (ValueId id : kernel.loads) units = std::max(units, ExchangeableUnits(graph.value(id)));
  for (ValueId id : kernel.stores) units = std::max(units, ExchangeableUnits(graph.value(id)));
  return units;
}

bool ReadsInPlace(const FusionImplementation& kernel) {
  const std::vector<PlacedValue>& placement = kernel.As<ElementParameters>().placement;
  return std::any_of(placement.begin(), placement.end(), [&](const PlacedValue& placed) {
    return placed.storage == StorageClass::kDevice &&
           std::binary_search(kernel.loads.begin(), kernel.loads.end(), placed.value);
  });
}

int ItemsPerElement(const Graph& graph, const Node& node, int choice) {
  const Type& type = graph.value(node.result).type;
  if (node.overload->form != v1::ELEMENT) return type.element_entries();
  return ThreadsPerElement(node.overload->implementations[choice], type.element_shape);
}

}  // namespace fusion
