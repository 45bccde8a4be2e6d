#include "server/lowering/lowering_context.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/lowering/long_sums.h"

namespace fusion {

LoweringContext::LoweringContext(const Graph& graph, const FusionImplementation& implementation,
                                 const LoweringOptions& options)
    : graph(graph),
      implementation(implementation),
      options(options),
      kernel_nodes(implementation.fusion.nodes) {}
LoweringContext::LoweringContext(const FusionImplementation& whole, const Graph& graph,
                                 const FusionImplementation& sweep, const LoweringOptions& options,
                                 int first_workspace)
    : graph(graph),
      implementation(sweep),
      options(options),
      kernel_nodes(whole.fusion.nodes),
      first_workspace_(first_workspace) {}

std::string LoweringContext::CType(ValueId value) const {
  return options.force_f64 ? "double" : DataTypeCName(graph.value(value).type.data_type);
}
int LoweringContext::TypeBytes(ValueId value) const {
  return options.force_f64 ? 8 : DataTypeBytes(graph.value(value).type.data_type);
}
std::string LoweringContext::Name(ValueId value) const {
  const std::string& given = graph.value(value).name;
  std::string name = given;
  const auto routine_ends_so = [&] {
    const std::string end = "_" + name;
    for (int node : kernel_nodes.Members()) {
      const std::string& source = graph.node(NodeId{node}).function->source;
      for (size_t at = source.find(end); at != std::string::npos; at = source.find(end, at + 1)) {
        const char next = at + end.size() < source.size() ? source[at + end.size()] : ' ';
        if (!absl::ascii_isalnum(next) && next != '_') return true;
      }
    }
    return false;
  };
  const auto taken = [&] {
    return name != given && std::any_of(graph.values().begin(), graph.values().end(),
                                        [&](const Value& other) { return other.name == name; });
  };
  while (routine_ends_so() || taken()) name += '_';
  return name;
}

bool LoweringContext::ProducedHere(ValueId value) const {
  const auto& producer = graph.value(value).producer;
  return producer.has_value() && InFusion(*producer);
}
bool LoweringContext::Stored(ValueId value) const {
  return std::binary_search(implementation.stores.begin(), implementation.stores.end(), value);
}

std::string LoweringContext::Pointer(ValueId value) {
  std::string name = "g_" + Name(value);
  for (const KernelArgument& argument : arguments_)
    if (argument.name == name) return name;
  const bool written = ProducedHere(value);
  // A pointer to what an earlier kernel wrote must not be restricted: CUDA would take that for constant and
  // load it before the kernel has waited for the earlier one (fu_launch_begin).
  // Nor may one to memory that is read as an input and written as an output, of this run or the one before.
  const Value& pointed = graph.value(value);
  const bool in_place = pointed.memory_of || pointed.overwritten_by;
  const bool restricted = !in_place && (written || pointed.is_input);
  arguments_.push_back({.kind = KernelArgument::Kind::kPointer,
                        .value = value,
                        .c_type = absl::StrCat(written ? "" : "const ", CType(value), "*",
                                               restricted ? " FUSION_RESTRICT" : ""),
                        .name = name,
                        .is_output = written});
  return name;
}

std::string LoweringContext::Size(const Extent& extent) {
  if (extent.name.empty()) return absl::StrCat(extent.constant, "LL");
  std::string name = "n_" + extent.name;
  for (const KernelArgument& argument : arguments_)
    if (argument.name == name) return name;
  arguments_.push_back(
      {.kind = KernelArgument::Kind::kSize, .size = extent.name, .c_type = "fu_index", .name = name});
  return name;
}

std::string LoweringContext::Sizes(const std::vector<Extent>& extents) {
  if (extents.empty()) return "1LL";
  std::vector<std::string> factors;
  for (const Extent& extent : extents) factors.push_back(Size(extent));
  return absl::StrJoin(factors, " * ");
}

std::string LoweringContext::Workspace(int slot, const std::string& c_type) {
  slot += first_workspace_.value_or(0);
  std::string name = absl::StrCat("w_", slot);
  for (const KernelArgument& argument : arguments_)
    if (argument.name == name) return name;
  arguments_.push_back({.kind = KernelArgument::Kind::kWorkspace,
                        .index = slot,
                        .c_type = absl::StrCat(c_type, "*"),
                        .name = name,
                        .is_output = true});
  return name;
}

std::string LoweringContext::Groups(int launch) {
  std::string name = "partials";
  for (const KernelArgument& argument : arguments_)
    if (argument.name == name) return name;
  arguments_.push_back(
      {.kind = KernelArgument::Kind::kGroups, .index = launch, .c_type = "fu_index", .name = name});
  return name;
}

std::string LoweringContext::ScalarInput(ValueId id, const std::string& c_type) {
  const Value& value = graph.value(id);
  if (value.literal.has_value()) {
    // With a point: -0 would be a whole number, which has no sign.
    const std::string digits = absl::StrFormat("%.17g", *value.literal);
    return absl::StrCat(c_type, "(", digits, digits.find_first_of(".e") == std::string::npos ? ".0" : "",
                        ")");
  }
  if (value.is_input) {
    std::string name = "s_" + Name(id);
    for (const KernelArgument& argument : arguments_)
      if (argument.name == name) return name;
    arguments_.push_back(
        {.kind = KernelArgument::Kind::kScalar, .value = id, .c_type = CType(id), .name = name});
    return name;
  }
  return absl::StrCat(Pointer(id), "[0]");
}

std::string LoweringContext::Scalar(ValueId value, const std::string& c_type) {
  return ProducedHere(value) ? "u_" + Name(value) : ScalarInput(value, c_type);
}

std::string LoweringContext::LoadName(ValueId value) const {
  if (loop.l2.percent == 0 || !loop.l2.Keeps(graph.value(value)))
    return absl::StrCat("fu_load<", loop.vector_width, ">");
  return absl::StrCat("fu_load_kept<", loop.vector_width, ", ", loop.l2.percent, ", ",
                      loop.l2.vectors ? "true" : "false", ">");
}

std::string LoweringContext::StoreName() const {
  return absl::StrCat(loop.l2.percent > 0 ? "fu_store_once<" : "fu_store<", loop.vector_width, ">");
}

std::string LoweringContext::Call(const Node& node, const std::string& routine,
                                  const std::vector<std::string>& arguments) {
  functions_.insert(node.function);
  std::vector<std::string> parameters = {CType(node)};
  for (int value : node.static_parameters) parameters.push_back(absl::StrCat(value));
  return absl::StrCat(routine, "<", absl::StrJoin(parameters, ", "), ">(", absl::StrJoin(arguments, ", "),
                      ")");
}

std::string LoweringContext::MonoidName(const Node& node) const {
  const char* name = "fu_sum";
  if (node.overload->monoid == v1::MAX) name = "fu_maximum";
  if (node.overload->monoid == v1::MIN) name = "fu_minimum";
  if (node.overload->monoid == v1::ARG_MAX) name = "fu_arg_max";
  return absl::StrCat(name, "<", CType(node), ">");
}

int LoweringContext::AccumulatorBytes(const Node& node) const {
  return node.overload->monoid == v1::ARG_MAX ? 16 : TypeBytes(node.result);
}

KernelLaunch LoweringContext::FinishKernel(ir::Kernel kernel, GridRule grid, SharedRule shared) {
  for (const KernelArgument& argument : arguments_)
    kernel.parameters.push_back({argument.c_type, argument.name});
  KernelLaunch launch{std::move(kernel), std::move(arguments_), std::move(grid), {std::move(shared)}};
  arguments_.clear();
  return launch;
}

std::string LoweringContext::kernel_name(const std::string& suffix) const {
  std::string name = "fused";
  for (NodeId node : implementation.order) {
    if (name.size() > 80) {
      absl::StrAppend(&name, "_and_more");
      break;
    }
    absl::StrAppend(&name, "_", Name(graph.node(node).result));
  }
  name += suffix;
  // The exported folder has functions of these names.
  for (const char* taken :
       {"fused_launch", "fused_graph", "fused_reference", "fused_workspace_bytes", "fused_error_string"})
    if (name == taken) return name + "_";
  return name;
}

std::string LoweringContext::comment() const {
  std::vector<std::string> calls;
  for (NodeId id : implementation.order) {
    const Node& node = graph.node(id);
    std::vector<std::string> operands;
    for (ValueId operand : node.operands) operands.push_back(Name(operand));
    calls.push_back(
        absl::StrCat(Name(node.result), " = ", node.function->name, "(", absl::StrJoin(operands, ", "), ")"));
    if (calls.size() == 12 && implementation.order.size() > 13) {
      calls.push_back(absl::StrCat("and ", implementation.order.size() - 12, " more"));
      break;
    }
  }
  return absl::StrJoin(calls, "; ");
}

void LowerScalars(LoweringContext& context, const std::vector<NodeId>& nodes,
                  std::vector<ir::Statement>* body) {
  for (NodeId id : nodes) {
    const Node& node = context.graph.node(id);
    std::vector<std::string> arguments;
    for (ValueId operand : node.operands) arguments.push_back(context.Scalar(operand, context.CType(node)));
    const std::string name = context.Name(node.result);
    body->push_back(ir::Text(absl::StrCat("const ", context.CType(node), " u_", name, " = ",
                                          context.Call(node, node.overload->routine, arguments), ";")));
    if (context.Stored(node.result))
      body->push_back(ir::If(
          "block == 0", {ir::Leader({absl::StrCat(context.Pointer(node.result), "[0] = u_", name, ";")})}));
  }
}

std::string ReductionTerm(LoweringContext& context, const Node& node,
                          const std::vector<std::string>& operands) {
  std::vector<std::string> arguments;
  for (int position : node.overload->term_operands) arguments.push_back(operands[position]);
  return context.Call(node, node.overload->term_routine, arguments);
}

std::string ReductionFinish(LoweringContext& context, const Node& node, const std::string& accumulated,
                            const std::vector<std::string>& operands) {
  std::string value = absl::StrCat(context.MonoidName(node), "::value(", accumulated, ")");
  if (node.overload->finish_routine.empty()) return value;
  std::vector<std::string> arguments = {
      value, absl::StrCat("(", context.CType(node), ")(", ReductionExtent(context, node), ")")};
  for (int position : node.overload->finish_operands) arguments.push_back(operands[position]);
  return context.Call(node, node.overload->finish_routine, arguments);
}

GridReduction PlaceGridReduction(LoweringContext& context, const Node& node, bool per_column,
                                 const Extent& columns, FusionCode* code) {
  GridReduction reduction{.node = node.id, .per_column = per_column};
  reduction.atomic = context.loop.atomic && node.overload->monoid == v1::SUM;
  reduction.in_place = reduction.atomic && context.Stored(node.result) &&
                       AddsInPlace(context.graph, node, context.kernel_nodes);
  if (reduction.in_place) return reduction;
  reduction.workspace_slot = static_cast<int>(code->workspace.size());
  code->workspace.push_back({.name = context.Name(node.result),
                             .entry_bytes = reduction.atomic ? 8 : context.AccumulatorBytes(node),
                             .extent = per_column ? columns : Extent{.constant = 1},
                             .per_group = !reduction.atomic});
  return reduction;
}

GridReduction PlaceRowReduction(LoweringContext& context, const Node& node, const Extent& rows,
                                FusionCode* code) {
  GridReduction reduction{.node = node.id};
  reduction.workspace_slot = static_cast<int>(code->workspace.size());
  code->workspace.push_back({.name = context.Name(node.result),
                             .entry_bytes = context.AccumulatorBytes(node),
                             .extent = rows,
                             .per_part = true});
  return reduction;
}

std::string ColumnParts(const std::string& columns, int64_t part_columns) {
  return absl::StrCat("(", columns, " <= ", part_columns, " ? 1 : (", columns, " + ", part_columns - 1,
                      ") / ", part_columns, ")");
}

std::string GridReductionTarget(LoweringContext& context, const GridReduction& reduction) {
  const Node& node = context.graph.node(reduction.node);
  return reduction.in_place ? context.Pointer(node.result)
                            : context.Workspace(reduction.workspace_slot,
                                                reduction.atomic ? "double" : context.Accumulator(node));
}

std::string GroupPart(LoweringContext& context, const GridReduction& reduction, const std::string& part) {
  const std::string target = GridReductionTarget(context, reduction);
  return reduction.atomic ? absl::StrCat("fu_atomic_add(", target, ", double(",
                                         AddedPart(context, reduction, part, ""), "));")
                          : absl::StrCat(target, "[group] = ", part, ";");
}

namespace {

// routine(accumulated, extent, finish operands), which are at hand when the kernel starts.
std::string CallOutside(LoweringContext& context, const Node& node, const std::string& routine,
                        const std::string& accumulated, const std::string& index) {
  std::vector<std::string> arguments = {
      accumulated, absl::StrCat("(", context.CType(node), ")(", ReductionExtent(context, node), ")")};
  for (int k : node.overload->finish_operands)
    arguments.push_back(node.operand_maps[k].empty()
                            ? context.ScalarInput(node.operands[k], context.CType(node))
                            : absl::StrCat(context.Pointer(node.operands[k]), "[", index, "]"));
  return context.Call(node, routine, arguments);
}

}  // namespace

std::string AddedPart(LoweringContext& context, const GridReduction& reduction, const std::string& part,
                      const std::string& index) {
  const Node& node = context.graph.node(reduction.node);
  if (!reduction.in_place || node.overload->part_routine.empty()) return part;
  return CallOutside(context, node, node.overload->part_routine, part, index);
}

std::vector<ir::Zeroed> ZerosFor(LoweringContext& context, const std::vector<GridReduction>& reductions,
                                 const Extent& columns) {
  std::vector<ir::Zeroed> zeros;
  for (const GridReduction& reduction : reductions) {
    if (!reduction.atomic) continue;
    const Node& node = context.graph.node(reduction.node);
    const std::string zero = "double(0)";
    zeros.push_back({.pointer = GridReductionTarget(context, reduction),
                     .count = reduction.per_column ? context.Size(columns) : "1",
                     .value = reduction.in_place && !node.overload->finish_routine.empty()
                                  ? CallOutside(context, node, node.overload->finish_routine, zero, "i")
                                  : zero});
  }
  return zeros;
}

bool NeedsFinish(const std::vector<GridReduction>& reductions, const std::vector<NodeId>& nodes) {
  return !nodes.empty() || !std::all_of(reductions.begin(), reductions.end(),
                                        [](const GridReduction& r) { return r.complete(); });
}

std::string ReductionExtent(LoweringContext& context, const Node& node) {
  std::vector<Extent> extents;
  for (const NodeDimension& dimension : node.dimensions)
    if (dimension.kind == v1::REDUCTION) extents.push_back(dimension.extent);
  return context.Sizes(extents);
}

}  // namespace fusion
