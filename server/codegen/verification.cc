#include "server/codegen/verification.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace fusion {
namespace {

// The values that are computed from a value ask this of it.
struct Request {
  bool positive = false;
  bool regular = false;
  bool condition = false;  // asked of an input, by what reads it itself
  double moderate = 0;     // about how large it may be; 0: anything
};

bool IsMatrixOfElements(const Type& type) { return type.mapped && type.element_shape.size() == 2; }

bool IsChoice(const Node& node) {
  const v1::Monoid monoid = node.overload->monoid;
  return node.is_reduction() && (monoid == v1::MAX || monoid == v1::MIN || monoid == v1::ARG_MAX);
}

int64_t ReductionLength(const Node& node, const SizeValues& sizes) {
  int64_t length = 1;
  for (const NodeDimension& dimension : node.dimensions)
    if (dimension.kind == v1::REDUCTION) length *= dimension.extent.Size(sizes);
  return length;
}

void Ask(Request* of, const Request& what) {
  of->positive |= what.positive;
  of->regular |= what.regular;
  of->condition |= what.condition;
  if (what.moderate > 0)
    of->moderate = of->moderate > 0 ? std::min(of->moderate, what.moderate) : what.moderate;
}

std::vector<Request> RequestsOf(const Graph& graph, const SizeValues& sizes) {
  std::vector<Request> requests(graph.values().size());
  for (int i = graph.node_count() - 1; i >= 0; --i) {
    const Node& node = graph.nodes()[i];
    const Request& of_result = requests[node.result.value];
    const std::vector<int>& terms = node.overload->term_operands;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const Value& operand = graph.value(node.operands[k]);
      Request request = of_result;
      const bool is_term = std::find(terms.begin(), terms.end(), static_cast<int>(k)) != terms.end();
      if (request.moderate > 0 && is_term && node.overload->monoid == v1::SUM) {
        // A sum of n products of entries of either sign is about sqrt(n) times one of them.
        const double of_product =
            request.moderate / std::sqrt(std::max<double>(ReductionLength(node, sizes), 1));
        request.moderate = std::pow(of_product, 1.0 / static_cast<double>(terms.size()));
      }
      if (request.regular && !IsMatrixOfElements(operand.type)) {
        request.regular = false;
        request.positive |= operand.type.element_entries() == 1;
      }
      const v1::ValueDomain domain = node.overload->operands[k].domain;
      request.positive |= domain == v1::POSITIVE || domain == v1::NONZERO;
      request.regular |= domain == v1::REGULAR;
      request.condition = domain == v1::CONDITION;
      Ask(&requests[node.operands[k].value], request);
      if (domain == v1::MODERATE) Ask(&requests[node.operands[k].value], {.moderate = 1});
    }
  }
  return requests;
}

void SetValues(const Value& value, const Request& request, v1::Buffer* input) {
  input->set_domain(request.positive ? v1::POSITIVE : v1::REAL);
  v1::InputValues* values = input->mutable_values();
  *values = value.values;
  if (values->kind() != v1::InputValues::DEFAULT) return;
  const std::vector<int>& shape = value.type.element_shape;
  if (request.regular && shape.size() == 2 && shape[0] == shape[1]) {
    values->set_kind(v1::InputValues::POSITIVE_DEFINITE);
  } else if (request.moderate > 0 && request.moderate < 1) {
    values->set_lower(request.positive ? request.moderate / 4 : -request.moderate);
    values->set_upper(request.moderate);
  } else if (request.condition && !request.positive) {
    values->set_kind(v1::InputValues::INTEGERS);
    values->set_upper(1);
  }
}

// Values that are whole multiples of a half where the inputs are whole numbers: input scalars are halves then
// (library/verification/input_rules.h).
std::vector<bool> WholeValues(const Graph& graph, const v1::Session& session) {
  std::vector<bool> whole(graph.values().size(), false);
  for (const Value& value : graph.values())
    if (value.literal)
      whole[value.id.value] = std::abs(*value.literal) <= 8 && std::fmod(*value.literal * 2, 1) == 0;
  for (const v1::Buffer& input : session.inputs())
    whole[input.id()] = input.values().kind() == v1::InputValues::DEFAULT && !(input.values().upper() > 0);
  for (const Node& node : graph.nodes())
    whole[node.result.value] =
        node.overload->rounding != v1::MAY_ROUND &&
        std::all_of(node.operands.begin(), node.operands.end(), [&](ValueId id) { return whole[id.value]; });
  return whole;
}

}  // namespace

v1::Buffer MakeBuffer(const Graph& graph, const SizeValues& sizes, ValueId id, bool force_f64) {
  const Value& value = graph.value(id);
  v1::Buffer buffer;
  buffer.set_id(id.value);
  buffer.set_name(value.name);
  buffer.set_count(StorageEntries(value, sizes));
  buffer.set_data_type(force_f64 ? v1::F64 : value.type.data_type);
  buffer.set_by_value(value.is_input && value.type.is_scalar());
  std::vector<int64_t> shape(value.type.element_shape.begin(), value.type.element_shape.end());
  if (!value.type.mapped)
    for (const Extent& extent : value.type.extents) shape.push_back(extent.Size(sizes));
  if (!shape.empty()) buffer.set_columns(shape.back());
  if (shape.size() < 2) return buffer;
  buffer.set_rows(shape[0]);
  buffer.set_row_stride(value.leading_dimension ? value.leading_dimension->Size(sizes) : shape[1]);
  return buffer;
}

v1::Session MakeSession(const Graph& graph, const SizeValues& sizes, const std::vector<double>& tolerances) {
  v1::Session session;
  DescribeBuffers(graph, sizes, &session);
  session.set_floor_bytes(static_cast<double>(graph.FloorBytes(sizes)));
  session.mutable_tolerances()->Add(tolerances.begin(), tolerances.end());
  return session;
}

void DescribeBuffers(const Graph& graph, const SizeValues& sizes, v1::Session* session) {
  const std::vector<Request> requests = RequestsOf(graph, sizes);
  for (ValueId id : graph.inputs()) {
    v1::Buffer* input = session->add_inputs();
    *input = MakeBuffer(graph, sizes, id, false);
    SetValues(graph.value(id), requests[id.value], input);
  }
  const std::vector<bool> whole = WholeValues(graph, *session);
  for (ValueId id : graph.outputs()) {
    v1::Buffer* output = session->add_outputs();
    *output = MakeBuffer(graph, sizes, id, false);
    if (const std::optional<ValueId> input = graph.value(id).memory_of) output->set_memory_of(input->value);
    session->add_whole_outputs(whole[id.value]);
  }
  for (const Node& node : graph.nodes()) {
    if (!IsChoice(node)) continue;
    const int64_t entries = std::max<int64_t>(graph.value(node.result).type.Entries(sizes), 1);
    const int64_t fewest = session->choosing_entries();
    session->set_choosing_entries(fewest == 0 ? entries : std::min(fewest, entries));
  }
}

bool IsRoundedResult(const Graph& graph, const KernelArgument& argument) {
  if (argument.kind != KernelArgument::Kind::kPointer || !argument.is_output) return false;
  const Value& value = graph.value(argument.value);
  return value.producer && graph.node(*value.producer).overload->rounding != v1::NEVER_ROUNDS;
}

std::vector<double> OutputTolerances(const Graph& graph, const SizeValues& sizes) {
  // Units of 8 times the unit roundoff. A sum of f32 keeps 2e-6 of positive numbers, which is four of them.
  constexpr double kOperation = 4, kLongSum = 4, kMagnified = 16;
  std::vector<double> factor(graph.values().size(), 0);
  for (const Node& node : graph.nodes()) {
    double operands = 0;
    for (ValueId operand : node.operands) operands = std::max(operands, factor[operand.value]);
    if (node.overload->rounding == v1::NEVER_ROUNDS) {
      factor[node.result.value] = node.overload->monoid == v1::ARG_MAX ? 0 : operands;
      continue;
    }
    const bool is_f64 = graph.value(node.result).type.data_type == v1::F64;
    double length = is_f64 ? static_cast<double>(ReductionLength(node, sizes)) : 1;
    for (int parameter : node.static_parameters) length *= std::max(1, parameter);
    double own = kOperation + 2 * std::sqrt(std::max(1.0, length));
    if (!is_f64 && ReductionLength(node, sizes) > 1) own += kLongSum;
    // Operands that must not be zero or negative: what divides or takes a logarithm magnifies errors.
    for (const Operand& operand : node.overload->operands)
      if (operand.domain != v1::REAL) own += kMagnified, operands *= 2;
    factor[node.result.value] = operands + own;
  }
  std::vector<double> tolerances;
  for (ValueId id : graph.outputs()) {
    const bool is_f64 = graph.value(id).type.data_type == v1::F64;
    tolerances.push_back((is_f64 ? 0x1p-53 : 0x1p-24) * 8 * factor[id.value]);
  }
  return tolerances;
}

}  // namespace fusion
