#include "server/search/host_costs.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace fusion {
namespace {

// An operation of a lane, between loads and stores of its arrays; one such load or store.
constexpr double kOperation = 3.4, kAccess = 3.4;
// The arrays of so many lanes leave the first-level cache little room.
constexpr int kManyLanes = 512;
constexpr double kOfManyLanes = 1.5;
// An operation of a function over elements: their entries lie apart, so much of it is done one by one.
constexpr double kElementOperation = 9;

double OfLanes(int lanes) { return lanes > kManyLanes ? kOfManyLanes : 1; }

}  // namespace

double HostEntryOperations(const std::string& function, double flops) {
  static const std::map<std::string, double> kOperations = {
      {"exp", 210},  {"log", 250}, {"tanh", 800}, {"erf", 1500},    {"div", 15},  {"coldiv", 15},
      {"rowdiv", 5}, {"vdiv", 15}, {"recip", 15}, {"sigmoid", 230}, {"sqrt", 15}, {"rsqrt", 30}};
  const auto known = kOperations.find(function);
  return known == kOperations.end() ? kOperation * flops : std::max(kOperation * flops, known->second);
}

double HostVectorOperations(const FusionShape& shape, double length, int vectors, int lanes) {
  return (shape.instructions + kAccess * length * vectors) * OfLanes(lanes);
}

double HostRowOperations(const FusionShape& shape, const RowPanelNeeds& needs, int lanes) {
  const RowPanelRoles& panel = shape.skeleton.row_panel;
  const int phases = std::max(1, panel.phase_count);
  const double entries = double(shape.Size(panel.rows)) * double(shape.Size(panel.columns));
  double operations =
      shape.instructions + entries * kAccess *
                               (needs.matrices * phases + needs.stored_matrices + needs.column_operands +
                                (needs.accumulator_bytes > 0 ? 2 : 0));
  // In which phases each computed matrix is needed; the last nodes first, as these need others.
  std::map<ValueId, std::set<int>> needed;
  for (size_t i = shape.members.size(); i-- > 0;) {
    const Node& node = shape.node(shape.members[i]);
    if (node.dimensions.size() != 2 || panel.phases[i] == kFinishPhase) continue;
    const bool matrix = !node.is_reduction() && node.result_map.size() == 2;
    std::set<int> in = matrix ? needed[node.result] : std::set<int>{panel.phases[i]};
    if (matrix && std::binary_search(shape.stores.begin(), shape.stores.end(), node.result))
      in.insert(panel.phases[i]);
    for (ValueId operand : node.operands) needed[operand].insert(in.begin(), in.end());
    if (matrix && in.size() > 1) operations += double(in.size() - 1) * shape.InstructionsOf(node);
  }
  return operations * OfLanes(lanes);
}

double HostElementOperations(const FusionShape& shape, int elements_per_block, bool alone) {
  const double turns = elements_per_block >= 512 ? 1 : elements_per_block >= 128 ? 1.3 : 1.5;
  return kElementOperation * shape.flops * (alone ? turns : 2);
}

}  // namespace fusion
