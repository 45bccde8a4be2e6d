#include "server/parse/proto_reader.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/similar_name.h"
#include "library/catalog/type_pattern.h"
#include "server/parse/input_values.h"
#include "server/parse/type_name.h"

namespace fusion {
namespace {

// "gemv", "mmul33", "mmul<3,3>"
bool IsFunctionName(absl::string_view name) {
  const size_t open = name.find('<');
  if (!IsIdentifier(name.substr(0, open)) || name.size() > kLongestName) return false;
  if (open == absl::string_view::npos) return true;
  const absl::string_view parameters = name.substr(open + 1);
  return parameters.size() > 1 && parameters.find_first_not_of("0123456789,") == parameters.size() - 1 &&
         parameters.back() == '>';
}

class GraphReader {
 public:
  GraphReader(const v1::Graph& graph, ErrorList* errors) : graph_(graph), errors_(errors) {}

  SyntaxTree Run() {
    for (int i = 0; i < graph_.sizes_size(); ++i) {
      const v1::SizeDeclaration& size = graph_.sizes(i);
      SizeSyntax read{{size.name(), Location::Field(GraphField::kSizes, i, EntryField::kName)}};
      if (size.has_default_value()) read.value = size.default_value();
      read.value_location = Location::Field(GraphField::kSizes, i, EntryField::kDefaultValue);
      tree_.sizes.push_back(read);
    }
    for (int i = 0; i < graph_.variables_size(); ++i) {
      tree_.types.push_back(ReadType(graph_.variables(i).type(), i));
      tree_.variables.push_back(
          {{graph_.variables(i).name(), Location::Field(GraphField::kVariables, i, EntryField::kName)}, i});
    }
    for (int i = 0; i < graph_.inputs_size(); ++i)
      tree_.inputs.push_back({graph_.inputs(i), Location::Field(GraphField::kInputs, i)});
    AddInputValues(graph_.input_values(), /*files=*/false, &tree_, errors_);
    for (int i = 0; i < graph_.calls_size(); ++i) ReadCall(graph_.calls(i), i);
    for (int i = 0; i < graph_.outputs_size(); ++i)
      tree_.outputs.push_back(
          {graph_.outputs(i), Location::Field(GraphField::kOutputs, i), graph_.calls_size() + 1});
    tree_.has_return = graph_.outputs_size() > 0;
    ReadInPlace();
    return std::move(tree_);
  }

 private:
  void ReadInPlace() {
    // The map is read in order, so that errors come in the same order every time.
    for (const auto& [name, input] :
         std::map<std::string, std::string>(graph_.in_place().begin(), graph_.in_place().end())) {
      const auto output = std::find(graph_.outputs().begin(), graph_.outputs().end(), name);
      const int position = static_cast<int>(output - graph_.outputs().begin());
      if (output == graph_.outputs().end()) {
        errors_->Add(Location{}, absl::StrCat("in_place: ", Shown(name), " is not among the outputs"));
        continue;
      }
      tree_.in_place.push_back({position,
                                {graph_.in_place().at(name), Location::Field(GraphField::kOutputs, position),
                                 graph_.calls_size() + 1}});
    }
  }

  TypeSyntax ReadType(const v1::VariableType& type, int variable) {
    TypeSyntax read;
    read.location = Location::Field(GraphField::kVariables, variable, EntryField::kType, -1);
    const auto fail = [&](std::string message) {
      errors_->Add(read.location, std::move(message));
      return read;
    };
    if (type.data_type() != v1::F32 && type.data_type() != v1::F64 &&
        type.data_type() != v1::DATA_TYPE_UNSPECIFIED)
      return fail(
          absl::StrCat("unknown data_type ", static_cast<int>(type.data_type()), "; it is F32 or F64"));
    const DataType data_type = type.data_type() == v1::F64 ? v1::F64 : v1::F32;
    if (type.mapped()) {
      if (type.extents_size() > 0)
        return fail("a mapped type has no extents; its length is the size elements");
      if (type.element_shape_size() > 2)
        return fail(
            absl::StrCat("element_shape has ", type.element_shape_size(), " entries; at most 2 are allowed"));
      for (int size : type.element_shape()) {
        if (size < 1 || size > kLargestElementSize)
          return fail(
              absl::StrCat("sizes of elements are 1 to ", kLargestElementSize, ", but one is ", size));
      }
      read.type = Type::Element(data_type, {type.element_shape().begin(), type.element_shape().end()});
      return read;
    }
    if (type.element_shape_size() > 0) return fail("element_shape is given, but mapped is not set");
    if (type.extents_size() > 2)
      return fail(
          absl::StrCat("the type has ", type.extents_size(), " extents; at most 2 (a matrix) are allowed"));
    if (type.has_leading_dimension() && type.extents_size() != 2)
      return fail("leading_dimension is given, but the type is no matrix of two extents");
    Type collection = Type::Scalar(data_type);
    for (int i = 0; i < type.extents_size(); ++i) {
      const Location location = Location::Field(GraphField::kVariables, variable, EntryField::kType, i);
      const std::optional<Extent> extent = ReadExtent(type.extents(i), location);
      if (!extent) return read;
      read.extents.push_back(location);
      collection.extents.push_back(*extent);
    }
    if (type.has_leading_dimension()) {
      read.leading_location = read.location;
      read.leading_dimension = ReadExtent(type.leading_dimension(), read.location);
      if (!read.leading_dimension) return read;
    }
    read.type = std::move(collection);
    return read;
  }

  std::optional<Extent> ReadExtent(const v1::Extent& extent, const Location& location) {
    if (extent.kind_case() == v1::Extent::KIND_NOT_SET) {
      errors_->Add(location, "the extent is empty; give size or constant");
      return std::nullopt;
    }
    if (!extent.has_size()) return Extent{"", extent.constant()};
    if (std::string bad = BadNameMessage(extent.size()); !bad.empty()) {
      errors_->Add(location, std::move(bad));
      return std::nullopt;
    }
    return Extent{extent.size(), 0};
  }

  void ReadCall(const v1::Call& call, int index) {
    CallSyntax read;
    const int order = index + 1;
    read.result = {call.result(), Location::Field(GraphField::kCalls, index, EntryField::kResult), order};
    read.function = call.function();
    read.function_location = Location::Field(GraphField::kCalls, index, EntryField::kFunction);
    if (!IsFunctionName(call.function())) {
      errors_->Add(read.function_location, absl::StrCat(Shown(call.function()), " is no name of a function; ",
                                                        "write it like gemv, mmul33 or mmul<3,3>"));
      MakeUnclear(call);
      return;
    }
    for (int i = 0; i < call.arguments_size(); ++i) {
      const v1::CallArgument& argument = call.arguments(i);
      const Location location = Location::Field(GraphField::kCalls, index, EntryField::kArguments, i);
      const bool finite = argument.has_literal() && std::isfinite(argument.literal());
      if (finite || (argument.has_variable() && !argument.variable().empty())) {
        read.arguments.push_back({argument.variable(), argument.literal(), location});
        continue;
      }
      errors_->Add(location, argument.has_literal() ? "the literal must be a finite number"
                                                    : "the argument is empty; give variable or literal");
      MakeUnclear(call);
      return;
    }
    tree_.calls.push_back(std::move(read));
  }

  void MakeUnclear(const v1::Call& call) {
    tree_.unclear.insert(call.result());
    for (const v1::CallArgument& argument : call.arguments()) tree_.unclear.insert(argument.variable());
  }

  const v1::Graph& graph_;
  ErrorList* errors_;
  SyntaxTree tree_;
};

}  // namespace

SyntaxTree ReadGraph(const v1::Graph& graph, int max_calls, ErrorList* errors) {
  if (graph.calls_size() > max_calls) {
    errors->Add(Location::Field(GraphField::kCalls, max_calls),
                absl::StrCat("the graph has more than ", max_calls, " calls, the limit of this server"));
    SyntaxTree tree;
    tree.complete = false;
    return tree;
  }
  return GraphReader(graph, errors).Run();
}

}  // namespace fusion
