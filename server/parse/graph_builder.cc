#include "server/parse/graph_builder.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "server/parse/number.h"

namespace fusion {
namespace {

std::vector<Size> CollectSizes(const SyntaxTree& tree, const std::vector<Value>& values) {
  std::vector<Size> sizes;
  bool has_elements = false;
  for (const SizeSyntax& size : tree.sizes) {
    Size read{std::string(size.name.text), size.value};
    if (read.name == kElementsSize) {
      has_elements = true;
      if (!read.default_value) read.default_value = kDefaultElements;
    }
    sizes.push_back(std::move(read));
  }
  bool mapped = false;
  for (const Value& value : values) mapped = mapped || value.type.mapped;
  if (mapped && !has_elements) sizes.push_back({kElementsSize, kDefaultElements});
  return sizes;
}

}  // namespace

std::shared_ptr<const Graph> BuildGraph(const SyntaxTree& tree, const std::string& name,
                                        std::shared_ptr<const Catalog> catalog, std::vector<Symbol>& symbols,
                                        std::vector<CheckedCall>& calls) {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs, outputs;
  absl::flat_hash_map<absl::string_view, int> positions;
  const auto add_value = [&](Value value) {
    value.id = ValueId{static_cast<int>(values.size())};
    values.push_back(std::move(value));
    return values.back().id;
  };
  const auto add_symbol = [&](Symbol& symbol) {
    Value value;
    value.name = std::string(symbol.name.text);
    value.type = *symbol.type;
    value.leading_dimension = symbol.leading_dimension;
    value.values = symbol.values;
    value.position = symbol.name.location.position;
    const ValueId id = add_value(std::move(value));
    symbol.value = id.value;
    positions.emplace(symbol.name.text, id.value);
    return id;
  };

  positions.reserve(symbols.size());
  // In the order of the input statements.
  absl::flat_hash_map<const NameSyntax*, Symbol*> by_input;
  for (Symbol& symbol : symbols)
    if (symbol.input != nullptr) by_input.emplace(symbol.input, &symbol);
  for (const NameSyntax& input : tree.inputs) inputs.push_back(add_symbol(*by_input.at(&input)));

  nodes.reserve(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    CheckedCall& call = calls[i];
    ResolvedCall& resolved = *call.resolved;
    Node node;
    node.id = NodeId{static_cast<int>(i)};
    node.function = call.function;
    node.overload = resolved.overload;
    for (size_t a = 0; a < call.arguments.size(); ++a) {
      if (call.arguments[a] >= 0) {
        node.operands.push_back(ValueId{symbols[call.arguments[a]].value});
        continue;
      }
      const ArgumentSyntax& argument = tree.calls[i].arguments[a];
      Value literal;
      literal.name = LiteralText(argument.literal);
      literal.type = Type::Scalar(resolved.result.data_type);
      literal.literal = argument.literal;
      literal.position = argument.location.position;
      node.operands.push_back(add_value(std::move(literal)));
    }
    node.result = add_symbol(symbols[call.result]);
    for (ResolvedDimension& dimension : resolved.dimensions)
      node.dimensions.push_back({std::move(dimension.extent), dimension.kind});
    node.operand_maps = std::move(resolved.operand_maps);
    node.result_map = std::move(resolved.result_map);
    node.static_parameters = std::move(resolved.static_parameters);
    node.position = tree.calls[i].result.location.position;
    nodes.push_back(std::move(node));
  }
  for (const NameSyntax& output : tree.outputs) outputs.push_back(ValueId{positions.at(output.text)});
  for (const InPlaceSyntax& in_place : tree.in_place)
    values[outputs[in_place.output].value].memory_of = ValueId{positions.at(in_place.input.text)};
  std::vector<Size> sizes = CollectSizes(tree, values);
  return std::make_shared<const Graph>(name, std::move(catalog), std::move(sizes), std::move(values),
                                       std::move(nodes), std::move(inputs), std::move(outputs));
}

}  // namespace fusion
