#include "server/codegen/fusion_code.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/codegen/device_runtime.h"
#include "server/codegen/joined_launch.h"
#include "server/codegen/kernel_versions.h"
#include "server/codegen/lowering_context.h"
#include "server/codegen/printer.h"
#include "server/plan/grid.h"

namespace fusion {

int64_t ExtentValue(const Extent& extent, const SizeValues& sizes) {
  return extent.name.empty() ? extent.constant : sizes.at(extent.name);
}

namespace {

int64_t GridParts(const GridRule& rule, const SizeValues& sizes) {
  if (rule.part_entries == 0) return 1;
  return std::max<int64_t>(1, (ExtentValue(rule.parts, sizes) + rule.part_entries - 1) / rule.part_entries);
}

}  // namespace

int64_t GridBlocks(const GridRule& rule, const SizeValues& sizes, int multiprocessors) {
  if (rule.extents.empty()) return 1;
  int64_t items = 1;
  for (const Extent& extent : rule.extents) items *= ExtentValue(extent, sizes);
  const int64_t blocks = (items + rule.items_per_block - 1) / rule.items_per_block;
  const int64_t most =
      rule.blocks_per_multiprocessor == 0
          ? kMaxGridBlocks
          : GridMultiprocessors(multiprocessors, rule.cluster_blocks) * rule.blocks_per_multiprocessor;
  const int64_t together = rule.cluster_blocks * GridParts(rule, sizes);
  return std::clamp<int64_t>(blocks, 1, std::max<int64_t>(1, most / together)) * together;
}

int64_t GridGroups(const GridRule& rule, const SizeValues& sizes, int multiprocessors) {
  return GridBlocks(rule, sizes, multiprocessors) / (rule.cluster_blocks * GridParts(rule, sizes)) *
         rule.groups_per_block;
}

int64_t SharedBytes(const std::vector<SharedRule>& rules, const SizeValues& sizes) {
  int64_t most = 0;
  for (const SharedRule& rule : rules)
    most = std::max(most,
                    rule.fixed_bytes +
                        (rule.bytes_per_entry ? rule.bytes_per_entry * ExtentValue(rule.extent, sizes) : 0));
  return most;
}

int64_t WorkspaceBytes(const WorkspaceSlot& slot, const std::vector<GridRule>& grids, const SizeValues& sizes,
                       int multiprocessors) {
  const GridRule& grid = grids[slot.launch];
  const int64_t groups = slot.per_part    ? GridParts(grid, sizes)
                         : slot.per_group ? GridGroups(grid, sizes, multiprocessors)
                                          : 1;
  return slot.entry_bytes * groups * ExtentValue(slot.extent, sizes);
}

namespace {

absl::StatusOr<FusionCode> LowerLoop(LoweringContext& context) {
  absl::StatusOr<FusionCode> code = absl::InternalError("a sweep is no loop of its own");
  switch (context.implementation.skeleton) {
    case Skeleton::kElement:
      code = LowerElement(context);
      break;
    case Skeleton::kVector:
    case Skeleton::kScalar:
      code = context.implementation.parameters.chunks > 0 ? LowerBlockVector(context) : LowerVector(context);
      break;
    case Skeleton::kRowPanel:
      code = LowerRowPanel(context);
      break;
    case Skeleton::kCooperative:
      break;
  }
  if (code.ok()) code->functions.assign(context.functions().begin(), context.functions().end());
  return code;
}

absl::StatusOr<FusionCode> LowerCooperative(const Graph& graph, const FusionImplementation& implementation,
                                            const LoweringOptions& options) {
  std::vector<FusionCode> parts;
  int workspace = 0;
  for (const FusionImplementation& sweep : implementation.sweeps) {
    LoweringContext context(implementation, graph, sweep, options, workspace);
    FUSION_ASSIGN_OR_RETURN(auto code, LowerLoop(context));
    workspace += static_cast<int>(code.workspace.size());
    parts.push_back(std::move(code));
  }
  LoweringContext whole(graph, implementation, options);
  return JoinLaunches(std::move(parts), whole.kernel_name(""), whole.comment(),
                      implementation.parameters.blocks_per_multiprocessor);
}

}  // namespace

absl::StatusOr<FusionCode> LowerFusion(const Graph& graph, const FusionImplementation& implementation,
                                       const LoweringOptions& options) {
  LoweringContext context(graph, implementation, options);
  auto code = implementation.skeleton == Skeleton::kCooperative
                  ? LowerCooperative(graph, implementation, options)
                  : LowerLoop(context);
  if (!code.ok()) return code;
  // The reference runs once for every job on a device, and is not timed.
  for (KernelLaunch& launch : code->launches) launch.kernel.rolled = options.force_f64;
  std::sort(code->functions.begin(), code->functions.end(),
            [](const ElementaryFunction* a, const ElementaryFunction* b) { return a->name < b->name; });
  code->functions.erase(std::unique(code->functions.begin(), code->functions.end()), code->functions.end());
  return code;
}

std::string PrintSource(const FusionCode& code, Language language, bool standalone, const SizeValues* sizes) {
  std::string source = standalone ? DeviceRuntime() : "#include \"fusion_device.h\"\n";
  for (const ElementaryFunction* function : code.functions)
    absl::StrAppend(&source, "\n// ", function->name, "\n", function->source);
  for (const KernelLaunch& launch : code.launches)
    for (const ir::Kernel& kernel : sizes == nullptr
                                        ? LaunchableKernels(launch)
                                        : std::vector{LaunchedKernel(launch, LaunchesWhole(launch, *sizes))})
      absl::StrAppend(&source, "\n", language == Language::kCuda ? PrintCuda(kernel) : PrintHost(kernel));
  return source;
}

}  // namespace fusion
