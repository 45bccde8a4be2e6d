#include "server/skeletons/shared/loop_roles.h"

#include <algorithm>
#include <map>

namespace fusion {

LoopRoles RolesOfVectors(const Graph& graph, const NodeSet& nodes) {
  LoopRoles roles{.loads_first = true};
  std::map<int, int> phases;
  for (int member : nodes.Members()) {  // ascending ids are a topological order
    const Node& node = graph.node(NodeId{member});
    int phase = 0;
    for (ValueId operand : node.operands) {
      const auto& producer = graph.value(operand).producer;
      if (!producer || !nodes.Contains(producer->value)) continue;
      phase = std::max(phase, phases.at(producer->value) + graph.node(*producer).is_reduction());
    }
    phases[member] = phase;
    roles.phases.push_back(phase);
    roles.roles.emplace_back(node.dimensions.size(), 1);
    roles.phase_count = std::max(roles.phase_count, phase + 1);
  }
  return roles;
}

}  // namespace fusion
