#include "server/graph/in_place.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

std::vector<Extent> ExtentsOf(const Node& node) {
  std::vector<Extent> extents;
  for (const NodeDimension& dimension : node.dimensions) extents.push_back(dimension.extent);
  return extents;
}

bool IsIdentity(const std::vector<int>& map, size_t dimensions) {
  if (map.size() != dimensions) return false;
  for (size_t i = 0; i < dimensions; ++i)
    if (map[i] != static_cast<int>(i)) return false;
  return true;
}

// The nodes of the set that depend on results of `from` inside the set, and `from`. Node ids are a
// topological order.
NodeSet DependingOn(const Graph& graph, const NodeSet& nodes, const NodeSet& from) {
  NodeSet depending = from;
  for (int member : nodes.Members())
    for (ValueId operand : graph.node(NodeId{member}).operands)
      if (const auto& producer = graph.value(operand).producer;
          producer && nodes.Contains(producer->value) && depending.Contains(producer->value))
        depending.Add(member);
  return depending;
}

bool UsesReduction(const Graph& graph, const NodeSet& nodes) {
  for (int member : nodes.Members()) {
    const Node& node = graph.node(NodeId{member});
    if (!node.is_reduction()) continue;
    for (NodeId consumer : graph.value(node.result).consumers)
      if (nodes.Contains(consumer.value)) return true;
  }
  return false;
}

std::string WhyNot(const Graph& graph, const NodeSet& nodes, const Node& writer, const Value& input) {
  NodeSet readers;
  for (NodeId reader : input.consumers)
    if (nodes.Contains(reader.value)) readers.Add(reader.value);
  if (readers.Size() == 0) return "";
  const std::string what =
      absl::StrCat(graph.value(writer.result).name, " takes the memory of ", input.name, ", ");
  const std::vector<Extent> extents = ExtentsOf(writer);
  for (int member : nodes.Members())
    if (ExtentsOf(graph.node(NodeId{member})) != extents)
      return absl::StrCat(what, "and the loop is not over its entries alone");
  for (int member : readers.Members()) {
    const Node& reader = graph.node(NodeId{member});
    for (size_t k = 0; k < reader.operands.size(); ++k)
      if (reader.operands[k] == input.id && !IsIdentity(reader.operand_maps[k], extents.size()))
        return absl::StrCat(what, "which ", graph.value(reader.result).name, " reads in another order");
  }
  const int written = writer.id.value;
  const bool several_passes = UsesReduction(graph, nodes);
  // Returns whether the writer depends on the node, or is the node.
  const auto leads_to_writer = [&](int member) {
    NodeSet from;
    from.Add(member);
    return DependingOn(graph, nodes, from).Contains(written);
  };
  const NodeSet checked = several_passes ? DependingOn(graph, nodes, readers) : readers;
  if (several_passes || !readers.Contains(written))
    for (int member : checked.Members())
      if (!leads_to_writer(member))
        return absl::StrCat(what, "which is still needed for ",
                            graph.value(graph.node(NodeId{member}).result).name);
  return "";
}

}  // namespace

std::string WhyNotInPlace(const Graph& graph, const NodeSet& nodes) {
  for (ValueId id : graph.outputs()) {
    const Value& output = graph.value(id);
    if (!output.memory_of || !output.producer || !nodes.Contains(output.producer->value)) continue;
    std::string reason = WhyNot(graph, nodes, graph.node(*output.producer), graph.value(*output.memory_of));
    if (!reason.empty()) return reason;
  }
  return "";
}

}  // namespace fusion
