#include "server/skeletons/shared/member_order.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "server/skeletons/shared/linearize.h"

namespace fusion {
namespace {

class Orderer {
 public:
  Orderer(const Graph& graph, const std::vector<int>& members, const LoopRoles& roles)
      : graph_(graph), members_(members), roles_(roles) {
    for (size_t i = 0; i < members.size(); ++i) position_[members[i]] = static_cast<int>(i);
  }

  MemberOrder Order(int64_t max_steps) const {
    MemberOrder all;
    std::map<int, std::vector<int>> phases;
    for (size_t i = 0; i < members_.size(); ++i) phases[roles_.phases[i]].push_back(static_cast<int>(i));
    bool better = false;
    for (const auto& [phase, positions] : phases) {
      const LinearizationProblem problem = ProblemOf(phase, positions);
      const Linearization found = Linearize(problem, {.max_steps = max_steps});
      for (int node : found.order) all.positions.push_back(positions[node]);
      better |= !std::is_sorted(found.order.begin(), found.order.end());
      all.live = std::max(all.live, found.active_size);
      all.lower_bound = std::max(all.lower_bound, found.lower_bound);
    }
    all.proved_optimal = all.live == all.lower_bound;
    // Phases may be interleaved in the order of the members, which then stays as it is.
    if (!better) std::sort(all.positions.begin(), all.positions.end());
    return all;
  }

 private:
  const Node& node(int position) const { return graph_.node(NodeId{members_[position]}); }
  int PositionOf(const std::optional<NodeId>& id) const {
    const auto found = id ? position_.find(id->value) : position_.end();
    return found == position_.end() ? -1 : found->second;
  }

  // Returns whether a lane has a register for each of its entries of what the map reads or writes: not one
  // for a row.
  bool PerEntry(int position, const std::vector<int>& map) const {
    return map.size() == 1 ? roles_.roles[position][map[0]] == 1 : !map.empty();
  }

  LinearizationProblem ProblemOf(int phase, const std::vector<int>& positions) const {
    LinearizationProblem problem{.node_count = static_cast<int>(positions.size())};
    std::map<ValueId, int> numbers;
    const auto variable = [&](ValueId id, int position, const std::vector<int>& map) -> FusionVariable* {
      if (graph_.value(id).literal) return nullptr;
      // Scalars and values of a row take no room, but must be there before what reads them.
      const int size = PerEntry(position, map);
      if (size == 0 && PositionOf(graph_.value(id).producer) < 0) return nullptr;
      const auto [number, is_new] = numbers.try_emplace(id, static_cast<int>(problem.variables.size()));
      if (is_new) problem.variables.push_back({.size = 0, .producer = -1, .consumers = {}});
      FusionVariable& found = problem.variables[number->second];
      found.size = std::max<int64_t>(found.size, size);
      return &found;
    };
    for (int i = 0; i < problem.node_count; ++i) {
      const Node& reader = node(positions[i]);
      for (size_t k = 0; k < reader.operands.size(); ++k)
        if (FusionVariable* operand = variable(reader.operands[k], positions[i], reader.operand_maps[k]))
          if (operand->consumers.empty() || operand->consumers.back() != i) operand->consumers.push_back(i);
      if (reader.is_reduction()) continue;  // its accumulator is there from the start to the end
      if (FusionVariable* result = variable(reader.result, positions[i], reader.result_map))
        result->producer = i;
    }
    // Vectors are loaded before the first node; rows where the first one reads them, unless they are held.
    for (const auto& [id, number] : numbers) {
      FusionVariable& touched = problem.variables[number];
      const Value& value = graph_.value(id);
      const int from = PositionOf(value.producer);
      touched.from_start = touched.producer < 0 && (from >= 0 || roles_.loads_first);
      for (NodeId consumer : value.consumers) {
        const int reader = PositionOf(consumer);
        if (reader < 0 || roles_.phases[reader] == kFinishPhase) continue;
        touched.to_end |= roles_.phases[reader] > phase;
        touched.from_start |= touched.producer < 0 && roles_.phases[reader] < phase;
      }
    }
    return problem;
  }

  const Graph& graph_;
  const std::vector<int>& members_;
  const LoopRoles& roles_;
  std::map<int, int> position_;
};

}  // namespace

MemberOrder OrderMembers(const Graph& graph, const std::vector<int>& members, const LoopRoles& roles,
                         int64_t max_steps) {
  if (!roles.phases.empty()) return Orderer(graph, members, roles).Order(max_steps);
  MemberOrder order;
  order.positions.resize(members.size());
  std::iota(order.positions.begin(), order.positions.end(), 0);
  return order;
}

}  // namespace fusion
