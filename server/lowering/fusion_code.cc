#include "server/lowering/fusion_code.h"

#include <algorithm>

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

}  // namespace fusion
