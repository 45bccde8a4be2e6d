// These rules say which sets of nodes one loop over rows computes. A row reduction is complete for its row
// one phase later; a column reduction, or a reduction to a scalar, only after all rows (finish phase), where
// maps over columns and scalars may follow it.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/skeletons/row_panel/row_panel.h"

namespace fusion {
namespace {

constexpr int kUnknown = -1, kRow = 0, kColumn = 1;

class RowPanelRules {
 public:
  RowPanelRules(const Graph& graph, const NodeSet& nodes)
      : graph_(graph), set_(nodes), members_(nodes.Members()) {}

  SkeletonAnswer Answer() {
    SkeletonAnswer answer{.skeleton = &RowPanelSkeleton()};
    LoopRoles& panel = answer.roles;
    std::string reason = AssignRoles(&panel);
    if (reason.empty()) reason = AssignPhases(&panel);
    if (!reason.empty()) return {.reason = std::move(reason)};
    answer.feasible = true;
    for (int member : members_) {
      panel.roles.push_back(roles_[member]);
      panel.phases.push_back(phases_[member]);
    }
    return answer;
  }

 private:
  const std::string& Name(ValueId value) const { return graph_.value(value).name; }
  bool Inside(const std::optional<NodeId>& node) const { return node && set_.Contains(node->value); }
  bool Inside(ValueId value) const { return Inside(graph_.value(value).producer); }
  const Node& Producer(ValueId value) const { return graph_.node(*graph_.value(value).producer); }
  bool LeavesFusion(ValueId id) const {
    const Value& value = graph_.value(id);
    if (value.is_output) return true;
    for (NodeId consumer : value.consumers)
      if (!set_.Contains(consumer.value)) return true;
    return false;
  }

  // The role that a one-dimensional operand or result has in a node, if known.
  int RoleIn(const Node& node, const std::vector<int>& map) const {
    return map.size() == 1 ? roles_.at(node.id.value)[map[0]] : kUnknown;
  }

  std::string AssignRoles(LoopRoles* panel) {
    bool have_panel = false;
    for (int member : members_) {
      const Node& node = graph_.node(NodeId{member});
      roles_[member].assign(node.dimensions.size(), kUnknown);
      if (node.dimensions.size() != 2) continue;
      auto assign = [&](const std::vector<int>& map) {
        if (map.size() != 2) return true;
        int& row = roles_[member][map[0]];
        int& column = roles_[member][map[1]];
        if (row == kColumn || column == kRow) return false;
        row = kRow;
        column = kColumn;
        return true;
      };
      bool consistent = assign(node.result_map);
      for (const auto& map : node.operand_maps) consistent = consistent && assign(map);
      if (!consistent) return absl::StrCat(Name(node.result), " reads a matrix along rows and along columns");
      if (roles_[member][0] == kUnknown || roles_[member][1] == kUnknown)
        return absl::StrCat(Name(node.result), " has no matrix that fixes rows and columns");
      Extent rows, columns;
      for (int d = 0; d < 2; ++d) (roles_[member][d] == kRow ? rows : columns) = node.dimensions[d].extent;
      if (have_panel && (rows != panel->rows || columns != panel->columns))
        return absl::StrCat(Name(node.result), " works on a matrix of another shape");
      panel->rows = rows;
      panel->columns = columns;
      have_panel = true;
    }
    // Vectors take the role that their producers and consumers inside give them; else that of a shared input.
    for (bool shared_inputs : {false, true}) {
      for (bool changed = true; changed;) {
        changed = false;
        for (int member : members_) {
          const Node& node = graph_.node(NodeId{member});
          if (node.dimensions.size() != 1 || roles_[member][0] != kUnknown) continue;
          const int role = shared_inputs ? RoleFromSharedInputs(node) : RoleFromNeighbours(node);
          if (role == kUnknown) continue;
          roles_[member][0] = role;
          changed = true;
        }
      }
    }
    for (int member : members_) {
      const Node& node = graph_.node(NodeId{member});
      for (size_t d = 0; d < node.dimensions.size(); ++d) {
        const int role = roles_[member][d];
        if (role == kUnknown)
          return absl::StrCat(Name(node.result), " runs neither along the rows nor along the columns");
        if (node.dimensions[d].extent != (role == kRow ? panel->rows : panel->columns))
          return absl::StrCat(Name(node.result), " has another length than the ",
                              role == kRow ? "rows" : "columns");
      }
      for (size_t k = 0; k < node.operands.size(); ++k) {
        if (!Inside(node.operands[k]) || node.operand_maps[k].size() != 1) continue;
        const Node& producer = Producer(node.operands[k]);
        if (RoleIn(producer, producer.result_map) != RoleIn(node, node.operand_maps[k]))
          return absl::StrCat(Name(node.operands[k]),
                              " is computed along one dimension and read along the other by ",
                              Name(node.result));
      }
    }
    return "";
  }

  int RoleFromNeighbours(const Node& node) const {
    for (size_t k = 0; k < node.operands.size(); ++k) {
      if (!Inside(node.operands[k]) || node.operand_maps[k].empty()) continue;
      const Node& producer = Producer(node.operands[k]);
      const int role = RoleIn(producer, producer.result_map);
      if (role != kUnknown) return role;
    }
    if (node.result_map.empty()) return kUnknown;
    for (NodeId id : graph_.value(node.result).consumers) {
      if (!Inside(id)) continue;
      const Node& consumer = graph_.node(id);
      for (size_t k = 0; k < consumer.operands.size(); ++k)
        if (consumer.operands[k] == node.result && RoleIn(consumer, consumer.operand_maps[k]) != kUnknown)
          return RoleIn(consumer, consumer.operand_maps[k]);
    }
    return kUnknown;
  }

  int RoleFromSharedInputs(const Node& node) const {
    for (size_t k = 0; k < node.operands.size(); ++k) {
      if (node.operand_maps[k].empty()) continue;
      for (NodeId id : graph_.value(node.operands[k]).consumers) {
        if (!Inside(id) || id == node.id) continue;
        const Node& other = graph_.node(id);
        for (size_t m = 0; m < other.operands.size(); ++m)
          if (other.operands[m] == node.operands[k] && RoleIn(other, other.operand_maps[m]) != kUnknown)
            return RoleIn(other, other.operand_maps[m]);
      }
    }
    return kUnknown;
  }

  bool HasRole(const Node& node, int role) const {
    const auto& roles = roles_.at(node.id.value);
    return std::find(roles.begin(), roles.end(), role) != roles.end();
  }
  // When the result of a node inside is at hand: its phase, one later for row reductions, or the finish
  // phase.
  int Available(const Node& node) const {
    const int phase = phases_.at(node.id.value);
    if (!node.is_reduction()) return phase;
    const bool by_row = node.result_map.size() == 1 && RoleIn(node, node.result_map) == kRow;
    return by_row && HasRole(node, kColumn) ? phase + 1 : kFinishPhase;
  }

  std::string AssignPhases(LoopRoles* panel) {
    for (int member : members_) {  // ascending ids are a topological order
      const Node& node = graph_.node(NodeId{member});
      const std::string& name = Name(node.result);
      const bool row = HasRole(node, kRow), column = HasRole(node, kColumn);
      int phase = 0;
      for (size_t k = 0; k < node.operands.size(); ++k) {
        if (!Inside(node.operands[k])) continue;
        const Node& producer = Producer(node.operands[k]);
        const int available = Available(producer);
        const std::string& operand = Name(node.operands[k]);
        if (available == kFinishPhase) {
          if (row) return absl::StrCat(operand, " is complete only after all rows, and ", name, " reads it");
          const bool operand_is_scalar = producer.result_map.empty();
          if (column && operand_is_scalar)
            return absl::StrCat(operand, " is complete only when the kernel ends, and ", name, " reads it");
        }
        phase = std::max(phase, available);
      }
      if (phase == kFinishPhase) {
        if (node.is_reduction()) return absl::StrCat(name, " reduces what is complete only after all rows");
        for (size_t k = 0; k < node.operands.size(); ++k) {
          if (!Inside(node.operands[k]) || node.operand_maps[k].empty()) continue;
          if (Available(Producer(node.operands[k])) != kFinishPhase)
            return absl::StrCat(name, " needs ", Name(node.operands[k]), " again after all rows");
        }
      } else {
        if (column && !row && node.is_reduction())
          return absl::StrCat(name, " reduces along the columns alone");
        if (column && !row && LeavesFusion(node.result))
          return absl::StrCat(name, " runs along the columns alone and is needed outside");
        panel->phase_count = std::max(panel->phase_count, phase + 1);
      }
      if (node.is_reduction() && !row && !column) return absl::StrCat(name, " reduces nothing");
      phases_[member] = phase;
      // The finish kernel must have at hand what a reduction over the grid needs to be finished.
      if (node.is_reduction() && Available(node) == kFinishPhase) {
        for (int k : node.overload->finish_operands)
          if (Inside(node.operands[k]) && !node.operand_maps[k].empty())
            return absl::StrCat(name, " needs ", Name(node.operands[k]), " again after all rows");
      }
    }
    return "";
  }

  const Graph& graph_;
  const NodeSet& set_;
  const std::vector<int> members_;
  std::map<int, std::vector<int>> roles_;
  std::map<int, int> phases_;
};

}  // namespace

SkeletonAnswer RowPanelAnswer(const Graph& graph, const NodeSet& nodes) {
  return RowPanelRules(graph, nodes).Answer();
}

}  // namespace fusion
