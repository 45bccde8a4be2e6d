#include "server/graph/graph.h"

#include <algorithm>
#include <utility>

namespace fusion {
namespace {

void SortUnique(std::vector<NodeId>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace

// Links between values and nodes follow from the operands and results of the nodes, so they are set here;
// what the caller put there is ignored.
Graph::Graph(std::string name, std::shared_ptr<const Catalog> catalog, std::vector<Size> sizes,
             std::vector<Value> values, std::vector<Node> nodes, std::vector<ValueId> inputs,
             std::vector<ValueId> outputs)
    : name_(std::move(name)),
      catalog_(std::move(catalog)),
      sizes_(std::move(sizes)),
      values_(std::move(values)),
      nodes_(std::move(nodes)),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      successors_(nodes_.size()),
      predecessors_(nodes_.size()) {
  for (size_t i = 0; i < values_.size(); ++i) {
    Value& value = values_[i];
    value.id = ValueId{static_cast<int>(i)};
    value.producer.reset();
    value.consumers.clear();
    value.is_input = value.is_output = false;
    value.overwritten_by.reset();
  }
  for (ValueId id : inputs_) values_[id.value].is_input = true;
  for (ValueId id : outputs_) values_[id.value].is_output = true;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    NodeId id{static_cast<int>(i)};
    nodes_[i].id = id;
    values_[nodes_[i].result.value].producer = id;
    for (ValueId operand : nodes_[i].operands) {
      std::vector<NodeId>& consumers = values_[operand.value].consumers;
      if (consumers.empty() || consumers.back() != id) consumers.push_back(id);
    }
  }
  for (const Node& node : nodes_) {
    for (ValueId operand : node.operands) {
      if (!values_[operand.value].producer) continue;
      NodeId producer = *values_[operand.value].producer;
      predecessors_[node.id.value].push_back(producer);
      successors_[producer.value].push_back(node.id);
    }
  }
  for (ValueId id : outputs_) {
    const Value& output = values_[id.value];
    if (!output.memory_of || !output.producer) continue;
    Value& input = values_[output.memory_of->value];
    input.overwritten_by = id;
    for (NodeId reader : input.consumers) {
      if (reader == *output.producer) continue;
      predecessors_[output.producer->value].push_back(reader);
      successors_[reader.value].push_back(*output.producer);
    }
  }
  for (std::vector<NodeId>& ids : successors_) SortUnique(ids);
  for (std::vector<NodeId>& ids : predecessors_) SortUnique(ids);
}

int64_t StorageEntries(const Value& value, const SizeValues& sizes) {
  if (!value.leading_dimension) return value.type.Entries(sizes);
  return value.type.extents[0].Size(sizes) * value.leading_dimension->Size(sizes);
}
int64_t StorageBytes(const Value& value, const SizeValues& sizes) {
  return StorageEntries(value, sizes) * DataTypeBytes(value.type.data_type);
}
std::string DeclaredType(const Value& value) {
  std::string text = value.type.ToString();
  if (value.leading_dimension) text.insert(text.size() - 1, ",ld=" + value.leading_dimension->ToString());
  return text;
}

int64_t Graph::FloorBytes(const SizeValues& sizes) const {
  int64_t bytes = 0;
  for (ValueId id : inputs_) bytes += value(id).type.Bytes(sizes);
  for (ValueId id : outputs_) bytes += value(id).type.Bytes(sizes);
  return bytes;
}

}  // namespace fusion
