#include "server/codegen/program.h"

#include <algorithm>
#include <map>
#include <set>

#include "server/codegen/kernel_versions.h"
#include "server/codegen/verification.h"

namespace fusion {
namespace {

constexpr int64_t kAlignment = 256;
int64_t Align(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Returns the values that the code computes and that rounding can change.
std::set<int> RoundedResults(const Graph& graph, const FusionCode& code) {
  std::set<int> results;
  for (const KernelLaunch& launch : code.launches)
    for (const KernelArgument& argument : launch.arguments)
      if (IsRoundedResult(graph, argument)) results.insert(argument.value.value);
  return results;
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
    const std::set<int> results = options.force_f64 ? RoundedResults(graph, *fusion.code) : std::set<int>();
    for (const KernelLaunch& launch : fusion.code->launches) {
      v1::Launch* out = program.add_launches();
      out->set_binary(fusion.binary);
      out->set_kernel(LaunchedName(launch, LaunchesWhole(launch, sizes)));
      out->set_grid(GridBlocks(launch.grid, sizes, options.multiprocessors));
      out->set_threads(launch.kernel.threads);
      out->set_shared_bytes(SharedBytes(launch.shared, sizes));
      out->set_cooperative(launch.kernel.cooperative());
      out->set_programmatic(options.programmatic);
      out->mutable_results()->Add(results.begin(), results.end());
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

}  // namespace fusion
