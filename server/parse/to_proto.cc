#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/type_resolver_util.h"
#include "server/graph/deterministic_bytes.h"
#include "server/parse/parse.h"

namespace fusion {
namespace {

void ExtentToProto(const Extent& extent, v1::Extent* proto) {
  if (extent.name.empty())
    proto->set_constant(extent.constant);
  else
    proto->set_size(extent.name);
}

v1::VariableType TypeToProto(const Value& value) {
  const Type& type = value.type;
  v1::VariableType proto;
  proto.set_data_type(type.data_type);
  proto.set_mapped(type.mapped);
  for (int size : type.element_shape) proto.add_element_shape(size);
  if (type.mapped) return proto;
  for (const Extent& extent : type.extents) ExtentToProto(extent, proto.add_extents());
  if (value.leading_dimension) ExtentToProto(*value.leading_dimension, proto.mutable_leading_dimension());
  return proto;
}

}  // namespace

v1::Graph ToProto(const Graph& graph) {
  v1::Graph proto;
  proto.set_name(graph.name());
  for (const Size& size : graph.sizes()) {
    v1::SizeDeclaration* declaration = proto.add_sizes();
    declaration->set_name(size.name);
    if (size.default_value) declaration->set_default_value(*size.default_value);
  }
  for (const Value& value : graph.values()) {
    if (value.literal) continue;
    v1::VariableDeclaration* declaration = proto.add_variables();
    declaration->set_name(value.name);
    *declaration->mutable_type() = TypeToProto(value);
  }
  for (ValueId id : graph.inputs()) {
    const Value& input = graph.value(id);
    proto.add_inputs(input.name);
    const v1::InputValues::Kind kind = input.values.kind();
    if (kind != v1::InputValues::DEFAULT && kind != v1::InputValues::FILE)
      (*proto.mutable_input_values())[input.name] = input.values;
  }
  for (const Node& node : graph.nodes()) {
    v1::Call* call = proto.add_calls();
    call->set_result(graph.value(node.result).name);
    call->set_function(node.function->name);
    for (ValueId id : node.operands) {
      const Value& operand = graph.value(id);
      if (operand.literal) {
        call->add_arguments()->set_literal(*operand.literal);
      } else {
        call->add_arguments()->set_variable(operand.name);
      }
    }
  }
  for (ValueId id : graph.outputs()) {
    const Value& output = graph.value(id);
    proto.add_outputs(output.name);
    if (output.memory_of) (*proto.mutable_in_place())[output.name] = graph.value(*output.memory_of).name;
  }
  for (const v1::FunctionDefinition& definition : graph.catalog().definitions()) {
    const ElementaryFunction* function = graph.catalog().Find(definition.name());
    if (function != nullptr && function->is_inline) *proto.add_functions() = definition;
  }
  return proto;
}

std::string PrintJson(const Graph& graph) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  // From its bytes: printed from the message, maps are in no order.
  const std::unique_ptr<google::protobuf::util::TypeResolver> types(
      google::protobuf::util::NewTypeResolverForDescriptorPool(
          "type.googleapis.com", google::protobuf::DescriptorPool::generated_pool()));
  const std::string type = absl::StrCat("type.googleapis.com/", v1::Graph::descriptor()->full_name());
  std::string json;
  const auto status = google::protobuf::util::BinaryToJsonString(
      types.get(), type, DeterministicBytes(ToProto(graph)), &json, options);
  return status.ok() ? json : "";
}

}  // namespace fusion
