#include "server/skeletons/cooperative/joined_launch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace fusion {
namespace {

// Adds a parameter, once for all sections; what one of them writes neither is read-only nor unaliased in the
// whole kernel.
void AddArgument(KernelArgument argument, std::vector<KernelArgument>* arguments) {
  const bool pointer =
      argument.kind == KernelArgument::Kind::kPointer || argument.kind == KernelArgument::Kind::kWorkspace;
  if (pointer && argument.is_output)
    argument.c_type = absl::StrReplaceAll(argument.c_type, {{" FUSION_RESTRICT", ""}});
  for (KernelArgument& present : *arguments) {
    if (present.name != argument.name) continue;
    if (argument.is_output && !present.is_output) present = std::move(argument);
    return;
  }
  arguments->push_back(std::move(argument));
}

void AddCondition(const WholeCondition& condition, std::optional<WholeCondition>* all) {
  if (!*all) {
    *all = condition;
    return;
  }
  const auto has = [](const WholeCondition& of, const WholeCondition::OfSize& rule) {
    return std::find(of.sizes.begin(), of.sizes.end(), rule) != of.sizes.end();
  };
  (*all)->exact &= condition.exact && std::all_of((*all)->sizes.begin(), (*all)->sizes.end(),
                                                  [&](const auto& rule) { return has(condition, rule); });
  for (const WholeCondition::OfSize& rule : condition.sizes)
    if (!has(**all, rule)) (*all)->sizes.push_back(rule), (*all)->exact = false;
  for (ValueId value : condition.aligned)
    if (!Contains((*all)->aligned, value)) (*all)->aligned.push_back(value);
}

}  // namespace

FusionCode JoinLaunches(std::vector<FusionCode> parts, std::string name, std::string comment,
                        int blocks_per_multiprocessor) {
  FusionCode joined;
  KernelLaunch launch;
  launch.kernel = {
      .name = std::move(name), .comment = std::move(comment), .minimum_blocks = blocks_per_multiprocessor};
  int groups_per_block = 1;
  for (FusionCode& part : parts) {
    for (KernelLaunch& next : part.launches) {
      launch.kernel.threads = next.kernel.threads;
      groups_per_block = std::max(groups_per_block, next.grid.groups_per_block);
      // The grid has as many blocks as the section with the finest work can use.
      if (!next.grid.extents.empty() &&
          (launch.grid.extents.empty() || next.grid.items_per_block < launch.grid.items_per_block))
        launch.grid = next.grid;
      for (ir::Section& section : next.kernel.sections) {
        for (const KernelArgument& argument : next.arguments) {
          if (argument.kind == KernelArgument::Kind::kGroups)
            section.body.insert(
                section.body.begin(),
                ir::Text(absl::StrCat("const fu_index ", argument.name, " = grid * ",
                                      part.launches[argument.index].grid.groups_per_block, ";")));
          else
            AddArgument(argument, &launch.arguments);
        }
        // Later sections begin behind a barrier of the grid.
        if (!launch.kernel.sections.empty())
          section.body.erase(std::remove_if(section.body.begin(), section.body.end(),
                                            [](const ir::Statement& statement) {
                                              return statement.kind == ir::Statement::Kind::kZeroWait;
                                            }),
                             section.body.end());
        launch.kernel.sections.push_back(std::move(section));
      }
      for (const ir::LaneVariable& variable : next.kernel.lane_variables)
        if (std::none_of(launch.kernel.lane_variables.begin(), launch.kernel.lane_variables.end(),
                         [&](const ir::LaneVariable& present) { return present.name == variable.name; }))
          launch.kernel.lane_variables.push_back(variable);
      if (next.whole) AddCondition(*next.whole, &launch.whole);
      launch.kernel.zeroed.insert(launch.kernel.zeroed.end(), next.kernel.zeroed.begin(),
                                  next.kernel.zeroed.end());
      if (next.kernel.uses_shared) {
        launch.kernel.shared_bytes =
            launch.kernel.uses_shared
                ? absl::StrCat("fu_larger(", launch.kernel.shared_bytes, ", ", next.kernel.shared_bytes, ")")
                : next.kernel.shared_bytes;
        launch.kernel.uses_shared = true;
        launch.shared.insert(launch.shared.end(), next.shared.begin(), next.shared.end());
      }
    }
    for (WorkspaceSlot& slot : part.workspace) {
      slot.launch = 0;
      joined.workspace.push_back(std::move(slot));
    }
    joined.functions.insert(joined.functions.end(), part.functions.begin(), part.functions.end());
    joined.limits.insert(joined.limits.end(), part.limits.begin(), part.limits.end());
    launch.kernel.kept_bytes = std::max(launch.kernel.kept_bytes, part.kept_bytes);
  }
  launch.grid.blocks_per_multiprocessor = blocks_per_multiprocessor;
  launch.grid.groups_per_block = groups_per_block;
  if (launch.shared.empty() && launch.kernel.kept_bytes > 0) launch.shared.emplace_back();
  for (SharedRule& rule : launch.shared) rule.fixed_bytes += launch.kernel.kept_bytes;
  for (const KernelArgument& argument : launch.arguments)
    launch.kernel.parameters.push_back({argument.c_type, argument.name});
  joined.launches.push_back(std::move(launch));
  return joined;
}

}  // namespace fusion
