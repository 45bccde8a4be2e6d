#include "server/codegen/program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "server/codegen/kernel_versions.h"

namespace fusion {
namespace {

constexpr int64_t kAlignment = 256;
int64_t Align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

v1::Buffer MakeBuffer(const Graph& graph, const SizeValues& sizes, ValueId id, bool force_f64) {
  const Value& value = graph.value(id);
  v1::Buffer buffer;
  buffer.set_id(id.value);
  buffer.set_name(value.name);
  buffer.set_count(StorageEntries(value, sizes));
  buffer.set_data_type(force_f64 ? v1::F64 : value.type.data_type);
  buffer.set_by_value(value.is_input && value.type.is_scalar());
  return buffer;
}

// With the rows and columns of the value, or of each element of it.
v1::Buffer MakeShapedBuffer(const Graph& graph, const SizeValues& sizes, ValueId id) {
  v1::Buffer buffer = MakeBuffer(graph, sizes, id, false);
  const Value& value = graph.value(id);
  std::vector<int64_t> shape(value.type.element_shape.begin(), value.type.element_shape.end());
  for (const Extent& extent : value.type.extents) shape.push_back(extent.Size(sizes));
  if (!shape.empty()) buffer.set_columns(shape.back());
  if (shape.size() < 2) return buffer;
  buffer.set_rows(shape[0]);
  buffer.set_row_stride(value.leading_dimension ? value.leading_dimension->Size(sizes) : shape[1]);
  return buffer;
}

}  // namespace

v1::Program BuildProgram(const Graph& graph, const SizeValues& sizes,
                         const std::vector<CompiledFusion>& fusions, const ProgramOptions& options) {
  v1::Program program;
  program.set_name(options.name);
  std::set<ValueId> temporaries;
  int64_t workspace = 0;
  for (const CompiledFusion& fusion : fusions) {
    std::vector<GridRule> grids;
    for (const KernelLaunch& launch : fusion.code->launches) grids.push_back(launch.grid);
    std::vector<int64_t> offsets;
    int64_t offset = 0;  // fusions run one after the other, so they share the workspace
    for (const WorkspaceSlot& slot : fusion.code->workspace) {
      offsets.push_back(offset);
      offset += Align(WorkspaceBytes(slot, grids, sizes, options.multiprocessors));
    }
    workspace = std::max(workspace, offset);
    for (const KernelLaunch& launch : fusion.code->launches) {
      v1::Launch* out = program.add_launches();
      out->set_binary(fusion.binary);
      out->set_kernel(LaunchedName(launch, LaunchesWhole(launch, sizes)));
      out->set_grid(GridBlocks(launch.grid, sizes, options.multiprocessors));
      out->set_threads(launch.kernel.threads);
      out->set_shared_bytes(SharedBytes(launch.shared, sizes));
      out->set_cooperative(launch.kernel.cooperative());
      out->set_programmatic(options.programmatic);
      for (const KernelArgument& argument : launch.arguments) {
        v1::LaunchArgument* to = out->add_arguments();
        switch (argument.kind) {
          case KernelArgument::Kind::kPointer: {
            to->set_buffer(argument.value.value);
            const Value& value = graph.value(argument.value);
            if (value.producer && !value.is_output) temporaries.insert(argument.value);
            break;
          }
          case KernelArgument::Kind::kScalar:
            to->set_scalar_buffer(argument.value.value);
            break;
          case KernelArgument::Kind::kSize:
            to->set_integer(sizes.at(argument.size));
            break;
          case KernelArgument::Kind::kWorkspace:
            to->set_workspace_offset(offsets[argument.index]);
            break;
          case KernelArgument::Kind::kGroups: {
            to->set_integer(GridGroups(grids[argument.index], sizes, options.multiprocessors));
            break;
          }
        }
      }
    }
  }
  for (ValueId id : temporaries) *program.add_temporaries() = MakeBuffer(graph, sizes, id, options.force_f64);
  program.set_workspace_bytes(workspace);
  return program;
}

void DescribeBuffers(const Graph& graph, const SizeValues& sizes, v1::Session* session) {
  // Backwards from restricted operands to everything they are computed from.
  std::vector<bool> restricted(graph.values().size(), false);
  for (int i = graph.node_count() - 1; i >= 0; --i) {
    const Node& node = graph.nodes()[i];
    for (size_t k = 0; k < node.operands.size(); ++k)
      if (node.overload->operands[k].domain != v1::REAL || restricted[node.result.value])
        restricted[node.operands[k].value] = true;
  }
  for (ValueId id : graph.inputs()) {
    v1::Buffer buffer = MakeShapedBuffer(graph, sizes, id);
    buffer.set_domain(restricted[id.value] ? v1::POSITIVE : v1::REAL);
    if (const v1::InputValues& values = graph.value(id).values; values.kind() != v1::InputValues::DEFAULT)
      *buffer.mutable_values() = values;
    *session->add_inputs() = buffer;
  }
  for (ValueId id : graph.outputs()) *session->add_outputs() = MakeShapedBuffer(graph, sizes, id);
}

std::vector<double> OutputTolerances(const Graph& graph, const SizeValues& sizes) {
  std::vector<double> factor(graph.values().size(), 1);
  for (const Node& node : graph.nodes()) {
    double operands = 0;
    for (ValueId operand : node.operands) operands = std::max(operands, factor[operand.value]);
    double own = 4;
    double length = 1;
    for (const NodeDimension& dimension : node.dimensions)
      if (dimension.kind == v1::REDUCTION)
        length *= dimension.extent.name.empty() ? dimension.extent.constant : sizes.at(dimension.extent.name);
    for (int parameter : node.static_parameters) length *= std::max(1, parameter);
    own += 2 * std::sqrt(std::max(1.0, length));
    // Operands that must not be zero or negative: what divides or takes a logarithm magnifies errors.
    for (const Operand& operand : node.overload->operands)
      if (operand.domain != v1::REAL) own += 16, operands *= 2;
    factor[node.result.value] = operands + own;
  }
  std::vector<double> tolerances;
  for (ValueId id : graph.outputs()) {
    const bool f64 = graph.value(id).type.data_type == v1::F64;
    tolerances.push_back((f64 ? 0x1p-53 : 0x1p-24) * 8 * factor[id.value]);
  }
  return tolerances;
}

}  // namespace fusion
