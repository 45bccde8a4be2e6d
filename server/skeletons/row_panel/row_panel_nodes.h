// The nodes of a row-panel fusion in terms of rows and columns.
#pragma once

#include <map>
#include <vector>

#include "server/graph/graph.h"
#include "server/plan/plan.h"
#include "server/skeletons/row_panel/parameters.h"

namespace fusion {

class RowPanelNodes {
 public:
  enum class Shape { kScalar, kRow, kColumn, kMatrix };

  // Both arguments outlive this object.
  RowPanelNodes(const Graph& graph, const FusionImplementation& implementation);

  int Phase(const Node& node) const { return panel_.phases[position_.at(node.id)]; }
  // Returns the shape of operand k (or, with k = -1, of the result).
  Shape ShapeOf(const Node& node, int k) const;
  // Returns the shape of the points that the node is computed at: what it reads, not what it gives.
  Shape SpaceOf(const Node& node) const;
  bool IsColumnReduction(const Node& node) const;
  bool IsRowReduction(const Node& node) const;
  // Returns whether the operand of a reduction enters its terms; else the result is finished with it.
  static bool IsTermOperand(const Node& node, int k);
  // Returns the first phase in which a node of the fusion reads the value.
  int FirstPhase(ValueId value) const;

 private:
  const std::vector<int>& Roles(const Node& node) const { return panel_.roles[position_.at(node.id)]; }

  const Graph& graph_;
  const LoopRoles& panel_;
  std::map<NodeId, size_t> position_;
};

// Returns whether an entry of the node takes several times as long as a load and a store of a host's lanes.
bool IsDear(const Node& node);

// Returns matrices that a later phase than their own needs, directly or to compute others again, and that are
// dear. `order` and `roles` are those of a fusion.
std::vector<ValueId> DearResults(const Graph& graph, const std::vector<NodeId>& order,
                                 const LoopRoles& roles);

}  // namespace fusion
