// A loop over vectors or rows uses the dimensions of its nodes, and can compute them, like this.
#pragma once

#include <vector>

#include "server/graph/graph.h"
#include "server/graph/node_set.h"

namespace fusion {

struct LoopRoles {
  Extent rows, columns;  // of a row panel
  // For each node of the fusion and each of its dimensions: 0 row, 1 column. Vectors run along columns.
  std::vector<std::vector<int>> roles;
  // For each node: the pass over the data in which it is computed. The reduction of a row in pass p is
  // complete in pass p + 1. kFinishPhase: computed after all rows, from column reductions or reductions to
  // scalars. Empty: the loop is of another kind.
  std::vector<int> phases;
  int phase_count = 1;
  bool loads_first = false;  // all that is loaded is in registers before the first node is computed

  template <typename Archive>
  void Fields(Archive& archive) {
    archive(rows, columns, roles, phases, phase_count, loads_first);
  }
};
inline constexpr int kFinishPhase = 1 << 20;

// Returns the roles of nodes over vectors; a node that needs a reduction's result is computed one pass later.
LoopRoles RolesOfVectors(const Graph& graph, const NodeSet& nodes);

}  // namespace fusion
