#include "server/skeletons/row_panel/row_tiles.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion {

RowTiles::RowTiles(LoweringContext& context, const RowPanelNodes& nodes, const RowStages& stages,
                   RowLanes& lanes, const RowValues& values)
    : context_(context),
      graph_(context.graph),
      implementation_(context.implementation),
      parameters_(context.implementation.As<RowPanelParameters>()),
      nodes_(nodes),
      stages_(stages),
      lanes_(lanes),
      values_(values) {}

void RowTiles::Place(FusionCode* code) {
  if (parameters_.tile_rows == 0) return;
  for (NodeId id : implementation_.order)
    if (const Node& node = graph_.node(id); nodes_.IsRowReduction(node))
      reductions_.push_back(PlaceRowReduction(context_, node, parameters_.roles.rows, code));
}

std::string RowTiles::TileLine(const std::string& columns) const {
  return absl::StrCat("const fu_index tiles = ", ColumnParts(columns, lanes_.TileColumns()),
                      ", tile = group % tiles * ", lanes_.TileColumns(),
                      ", part = group / tiles, first = part * ", parameters_.tile_rows, "; (void)part;");
}

ir::Statement RowTiles::StorePart(const Node& node, const std::string& total) {
  const auto reduction =
      std::find_if(reductions_.begin(), reductions_.end(),
                   [&](const GridReduction& candidate) { return candidate.node == node.id; });
  return ir::Leader(
      stages_.ForEachRow("step",
                         {absl::StrCat(GridReductionTarget(context_, *reduction), "[row * tiles + tile / ",
                                       lanes_.TileColumns(), "] = ", values_.OfRow(total), ";")},
                         StepRows::kPresent));
}

std::string RowTiles::ColumnOperand(const Node& node, int k, const std::string& columns,
                                    std::map<ValueId, std::string>* at_hand,
                                    std::vector<std::string>* lines) {
  const ValueId value = node.operands[k];
  if (node.operand_maps[k].empty()) return context_.Scalar(value, context_.CType(node));
  auto [it, is_new] = at_hand->try_emplace(value, "l_" + context_.Name(value));
  if (is_new) {
    lines->push_back(
        absl::StrCat(context_.CType(value), " ", it->second, "[", parameters_.vector_width, "];"));
    lines->push_back(lanes_.Load(it->second, context_.Pointer(value), value, false));
  }
  return it->second + "[v]";
}

ir::Statement RowTiles::CompleteColumns(const std::vector<GridReduction>& reductions,
                                        const std::vector<NodeId>& finish_nodes, const std::string& columns) {
  std::map<ValueId, std::string> at_hand;
  std::vector<std::string> lines;
  const auto complete = [&](const Node& node, const std::string& text) {
    const std::string name = "f_" + context_.Name(node.result);
    lines.insert(
        lines.end(),
        {absl::StrCat(context_.CType(node), " ", name, "[", parameters_.vector_width, "];"), "FUSION_UNROLL",
         absl::StrCat("for (int v = 0; v < ", parameters_.vector_width, "; ++v) ", name, "[v] = ", text,
                      ";")});
    at_hand[node.result] = name;
    if (context_.Stored(node.result))
      lines.push_back(absl::StrCat(context_.StoreName(), "(", context_.Pointer(node.result), ", ", name,
                                   ", j, ", columns, ", ", lanes_.Aligned(node.result, false), ");"));
  };
  const auto operand = [&](const Node& node, int k) {
    return ColumnOperand(node, k, columns, &at_hand, &lines);
  };
  for (const GridReduction& reduction : reductions) {
    const Node& node = graph_.node(reduction.node);
    std::vector<std::string> operands(node.operands.size());
    for (int k : node.overload->finish_operands) operands[k] = operand(node, k);
    complete(node, ReductionFinish(context_, node,
                                   absl::StrCat("$acc_", context_.Name(node.result), "[c][v]"), operands));
  }
  for (NodeId id : finish_nodes) {
    const Node& node = graph_.node(id);
    std::vector<std::string> operands;
    for (int k = 0; k < static_cast<int>(node.operands.size()); ++k) operands.push_back(operand(node, k));
    complete(node, context_.Call(node, node.overload->routine, operands));
  }
  return lanes_.ChunkLoop(std::move(lines), false);
}

// Reductions, what depends on them, and, again, what that needs of what this kernel has computed of rows.
RowFinish RowTiles::Finish() const {
  RowFinish finish{.rows = parameters_.roles.rows,
                   .part_columns = lanes_.TileColumns(),
                   .reductions = reductions_,
                   .columns_complete = parameters_.tile_rows > 0};
  if (!row_parts()) return finish;
  std::set<ValueId> needed;
  for (auto id = implementation_.order.rbegin(); id != implementation_.order.rend(); ++id) {
    const Node& node = graph_.node(*id);
    if (nodes_.Phase(node) == kFinishPhase) continue;
    const bool reduces = nodes_.IsRowReduction(node), late = !RowsHere(nodes_.Phase(node));
    if (!reduces && (nodes_.SpaceOf(node) != Shape::kRow || !(late || needed.count(node.result)))) continue;
    finish.nodes.insert(finish.nodes.begin(), *id);
    if (late || reduces) finish.stored.insert(*id);
    for (int k = 0; k < static_cast<int>(node.operands.size()); ++k)
      if (!reduces || !nodes_.IsTermOperand(node, k)) needed.insert(node.operands[k]);
  }
  return finish;
}

}  // namespace fusion
