#include "server/search/kernel_identity.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/sha256.h"
#include "server/skeletons/skeleton.h"

namespace fusion {
namespace {

// Changes when the text does.
constexpr char kVersion[] = "fusion kernel 1\n";

class FamilyText {
 public:
  FamilyText(const Graph& graph, const SizeValues& sizes, const NodeSet& nodes)
      : graph_(graph), sizes_(sizes) {
    FindLoadsAndStores(graph, nodes, &loads_, &stores_);
    for (int member : nodes.Members()) WriteNode(graph.node(NodeId{member}));
  }
  const std::string& text() const { return text_; }
  std::string SizesText() const { return absl::StrJoin(values_, ","); }

 private:
  void WriteNode(const Node& node) {
    absl::StrAppend(&text_, node.function->name, " ", node.overload - node.function->overloads.data(), " ",
                    node.function->source_hash);
    for (int parameter : node.static_parameters) absl::StrAppend(&text_, " <", parameter, ">");
    for (ValueId operand : node.operands) WriteValue(graph_.value(operand));
    text_ += " ->";
    WriteValue(graph_.value(node.result));
    text_ += "\n";
  }

  void WriteValue(const Value& value) {
    if (value.literal) {
      uint64_t bits = 0;
      std::memcpy(&bits, &*value.literal, sizeof(bits));
      absl::StrAppend(&text_, " literal:", absl::Hex(bits));
      return;
    }
    const auto [number, is_new] = numbers_.try_emplace(value.id, static_cast<int>(numbers_.size()));
    absl::StrAppend(&text_, " ", number->second);
    if (!is_new) return;
    absl::StrAppend(&text_, ":", value.type.data_type == v1::F64 ? "f64" : "f32",
                    value.type.mapped ? " mapped" : "");
    for (int extent : value.type.element_shape) absl::StrAppend(&text_, " ", extent);
    for (const Extent& extent : value.type.extents) WriteExtent(extent);
    if (value.leading_dimension) text_ += " ld", WriteExtent(*value.leading_dimension);
    if (std::binary_search(loads_.begin(), loads_.end(), value.id)) text_ += " read";
    if (std::binary_search(stores_.begin(), stores_.end(), value.id)) text_ += " written";
    text_ += ";";
  }

  void WriteExtent(const Extent& extent) {
    if (extent.name.empty()) {
      absl::StrAppend(&text_, " [", extent.constant, "]");
      return;
    }
    const auto [number, is_new] = extents_.try_emplace(extent.name, static_cast<int>(extents_.size()));
    if (is_new) values_.push_back(sizes_.at(extent.name));
    absl::StrAppend(&text_, " [s", number->second, "]");
  }

  const Graph& graph_;
  const SizeValues& sizes_;
  std::vector<ValueId> loads_, stores_;  // ascending
  std::string text_ = kVersion;
  std::map<ValueId, int> numbers_;
  std::map<std::string, int> extents_;
  std::vector<int64_t> values_;
};

}  // namespace

KernelIdentity KernelNames::Of(const NodeSet& nodes) const {
  const FamilyText family(graph_, sizes_, nodes);
  return {.family = Sha256Hex(family.text()).substr(0, 32), .sizes = family.SizesText(), .variant = ""};
}

KernelIdentity KernelNames::Of(const FusionImplementation& implementation) const {
  KernelIdentity identity = Of(implementation.fusion.nodes);
  identity.variant = VariantOf(graph_, implementation);
  return identity;
}

std::string VariantOf(const Graph& graph, const FusionImplementation& implementation) {
  std::string text = implementation.skeleton->Variant(implementation);
  // The results of earlier kernels are not loaded as constants are (LoweringContext::Pointer).
  for (size_t i = 0; i < implementation.loads.size(); ++i)
    if (!graph.value(implementation.loads[i]).is_input) absl::StrAppend(&text, " after ", i);
  return text;
}

}  // namespace fusion
