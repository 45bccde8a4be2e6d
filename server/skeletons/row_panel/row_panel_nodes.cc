#include "server/skeletons/row_panel/row_panel_nodes.h"

#include <algorithm>
#include <set>

namespace fusion {

RowPanelNodes::RowPanelNodes(const Graph& graph, const FusionImplementation& implementation)
    : graph_(graph), panel_(implementation.As<RowPanelParameters>().roles) {
  for (size_t i = 0; i < implementation.order.size(); ++i) position_[implementation.order[i]] = i;
}

RowPanelNodes::Shape RowPanelNodes::ShapeOf(const Node& node, int k) const {
  const std::vector<int>& map = k < 0 ? node.result_map : node.operand_maps[k];
  if (map.empty()) return Shape::kScalar;
  if (map.size() == 2) return Shape::kMatrix;
  return Roles(node)[map[0]] == 0 ? Shape::kRow : Shape::kColumn;
}

RowPanelNodes::Shape RowPanelNodes::SpaceOf(const Node& node) const {
  bool row = false, column = false;
  for (int role : Roles(node)) (role == 0 ? row : column) = true;
  return row && column ? Shape::kMatrix : row ? Shape::kRow : column ? Shape::kColumn : Shape::kScalar;
}

bool RowPanelNodes::IsColumnReduction(const Node& node) const {
  return node.is_reduction() && SpaceOf(node) == Shape::kMatrix && ShapeOf(node, -1) == Shape::kColumn;
}

bool RowPanelNodes::IsRowReduction(const Node& node) const {
  return node.is_reduction() && SpaceOf(node) == Shape::kMatrix && ShapeOf(node, -1) == Shape::kRow;
}

bool RowPanelNodes::IsTermOperand(const Node& node, int k) {
  const auto& terms = node.overload->term_operands;
  return std::find(terms.begin(), terms.end(), k) != terms.end();
}

int RowPanelNodes::FirstPhase(ValueId value) const {
  int first = kFinishPhase;
  for (NodeId id : graph_.value(value).consumers)
    if (position_.count(id)) first = std::min(first, Phase(graph_.node(id)));
  return first;
}

bool IsDear(const Node& node) {
  constexpr double kDearOperations = 20;
  return node.function->host_operations >= kDearOperations;
}

std::vector<ValueId> DearResults(const Graph& graph, const std::vector<NodeId>& order,
                                 const LoopRoles& roles) {
  std::map<ValueId, std::set<int>> needed;  // in which phases
  std::vector<ValueId> results;
  for (size_t i = order.size(); i-- > 0;) {  // those that need others come first
    const Node& node = graph.node(order[i]);
    if (node.dimensions.size() != 2 || roles.phases[i] == kFinishPhase) continue;
    std::set<int> phases = {roles.phases[i]};
    if (!node.is_reduction() && node.result_map.size() == 2) {
      const std::set<int>& later = needed[node.result];
      const bool again =
          std::any_of(later.begin(), later.end(), [&](int phase) { return phase > roles.phases[i]; });
      if (again && IsDear(node))
        results.push_back(node.result);
      else
        phases.insert(later.begin(), later.end());
    }
    for (ValueId operand : node.operands) needed[operand].insert(phases.begin(), phases.end());
  }
  return results;
}

}  // namespace fusion
