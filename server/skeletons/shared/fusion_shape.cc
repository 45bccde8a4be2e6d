#include "server/skeletons/shared/fusion_shape.h"

#include <algorithm>
#include <set>
#include <utility>

#include "server/skeletons/shared/host_costs.h"
#include "server/skeletons/shared/member_order.h"
#include "server/target/target.h"

namespace fusion {

double NodeFlops(const Graph& graph, const Node& node, const SizeValues& sizes) {
  double points = 1;
  for (const NodeDimension& dimension : node.dimensions)
    points *= static_cast<double>(dimension.extent.Size(sizes));
  if (node.overload->form == v1::ENTRYWISE) points *= graph.value(node.result).type.element_entries();
  auto flops =
      EvaluateExpression(node.overload->flops, node.overload->static_parameters, node.static_parameters);
  return points * (flops.ok() ? static_cast<double>(*flops) : 1.0);
}

bool FusionShape::IsGridReduction(size_t i) const {
  const Node& reduction = node(members[i]);
  if (!reduction.is_reduction()) return false;
  const bool to_rows = reduction.dimensions.size() == 2 && !reduction.result_map.empty() &&
                       roles.roles[i][reduction.result_map[0]] == 0;
  return !to_rows;
}

double FusionShape::InstructionsOf(const Node& node) const {
  double points = 1;
  for (const NodeDimension& dimension : node.dimensions)
    points *= static_cast<double>(Size(dimension.extent));
  const double flops = NodeFlops(graph, node, sizes) / std::max(points, 1.0);
  const ElementaryFunction& function = *node.function;
  return points * (simt() ? std::max(flops, function.gpu_instructions)
                          : HostEntryOperations(profile(), function, flops));
}

FusionImplementation FusionShape::Base() const {
  FusionImplementation implementation;
  implementation.fusion.nodes = nodes;
  for (int member : members) implementation.order.push_back(NodeId{member});
  implementation.skeleton = skeleton;
  implementation.loads = loads;
  implementation.stores = stores;
  return implementation;
}

KernelTraits FusionShape::Traits() const {
  KernelTraits traits;
  traits.bytes_read = bytes_read;
  traits.bytes_written = bytes_written;
  traits.flops = entry_bytes == 8 ? features().f32_over_f64 * flops : flops;
  traits.launches = grid_reductions > 0 ? 2 : 1;
  return traits;
}

namespace {

// Everything that follows the members with them.
void OrderByRegisters(FusionShape* shape) {
  if (shape->members.size() < 3) return;  // nothing to gain
  const MemberOrder order = OrderMembers(shape->graph, shape->members, shape->roles);
  if (std::is_sorted(order.positions.begin(), order.positions.end())) return;
  const std::vector<int> members = std::exchange(shape->members, {});
  const LoopRoles given = shape->roles;
  LoopRoles& ordered = shape->roles;
  ordered.roles.clear();
  ordered.phases.clear();
  for (int position : order.positions) {
    shape->members.push_back(members[position]);
    ordered.roles.push_back(given.roles[position]);
    ordered.phases.push_back(given.phases[position]);
  }
}

}  // namespace

FusionShape ShapeOfFusion(const Graph& graph, const NodeSet& nodes, const SizeValues& sizes,
                          const CostModel& model, SkeletonAnswer answer) {
  FusionShape shape{.graph = graph,
                    .sizes = sizes,
                    .model = model,
                    .nodes = nodes,
                    .members = nodes.Members(),
                    .skeleton = answer.skeleton,
                    .roles = std::move(answer.roles)};
  OrderByRegisters(&shape);
  FindLoadsAndStores(graph, nodes, &shape.loads, &shape.stores);
  for (ValueId value : shape.loads) shape.bytes_read += graph.value(value).type.Bytes(sizes);
  for (ValueId value : shape.stores) shape.bytes_written += graph.value(value).type.Bytes(sizes);
  for (size_t i = 0; i < shape.members.size(); ++i) {
    const Node& node = shape.node(shape.members[i]);
    shape.flops += NodeFlops(graph, node, sizes);
    shape.instructions += shape.InstructionsOf(node);
    shape.entry_bytes = std::max(shape.entry_bytes, DataTypeBytes(graph.value(node.result).type.data_type));
    if (shape.IsGridReduction(i)) ++shape.grid_reductions;
  }
  if (shape.entry_bytes == 8) shape.instructions *= 2;  // f64 is issued at half the rate at best
  return shape;
}

int L2Percent(const FusionShape& shape, bool vectors) {
  // Set by hand, on an H200 and an H100 (docs/decisions/0021). Not all of the cache, perhaps because
  // lines that both halves of the chip read are in both halves of the cache; less where results pass through
  // it too. Results beside inputs that do not nearly fit are slower with any share: MADD f64 of 2048 square,
  // 100 MB.
  constexpr double kShare = 0.5, kLeastData = 0.5, kMostDataWithResults = 1.4, kNearlyFits = 0.8;
  if (!shape.features().kept_lines || !shape.model.back_to_back()) return 0;
  constexpr L2Use kAny = {.vectors = true};
  double inputs = 0, results = 0;
  for (ValueId input : shape.graph.inputs())
    if (kAny.Keeps(shape.graph.value(input))) inputs += shape.graph.value(input).type.Bytes(shape.sizes);
  for (ValueId output : shape.graph.outputs()) results += shape.graph.value(output).type.Bytes(shape.sizes);
  const double cache = shape.model.device().l2_bytes();
  if (inputs == 0 || inputs + results < kLeastData * cache) return 0;
  const bool beside_results = results >= inputs / 4;
  if (beside_results && inputs + results > kMostDataWithResults * cache) return 0;
  const double beside = vectors || inputs + results <= kNearlyFits * cache ? 0.3 : 0.2;
  const double share = std::min(1.0, (beside_results ? beside : kShare) * cache / inputs);
  const int percent = static_cast<int>(20 * share) * 5;
  return percent < 10 ? 0 : percent;
}

void ReadFromL2(const FusionShape& shape, const L2Use& use, KernelTraits* traits) {
  for (ValueId value : shape.loads) {
    if (!use.Keeps(shape.graph.value(value))) continue;
    const double bytes = use.percent / 100.0 * shape.graph.value(value).type.Bytes(shape.sizes);
    traits->bytes_read -= bytes;
    traits->cache_bytes += bytes;
  }
}

void FindLoadsAndStores(const Graph& graph, const NodeSet& nodes, std::vector<ValueId>* loads,
                        std::vector<ValueId>* stores) {
  std::set<ValueId> read, written;
  for (int member : nodes.Members()) {
    const Node& node = graph.node(NodeId{member});
    for (ValueId id : node.operands) {
      const Value& value = graph.value(id);
      if (value.literal || (value.producer && nodes.Contains(value.producer->value))) continue;
      read.insert(id);
    }
    const Value& result = graph.value(node.result);
    bool leaves = result.is_output;
    for (NodeId consumer : result.consumers) leaves |= !nodes.Contains(consumer.value);
    if (leaves) written.insert(node.result);
  }
  loads->assign(read.begin(), read.end());
  stores->assign(written.begin(), written.end());
}

int MostRegisters(const DeviceDescription& device, int threads) {
  return std::min(255, device.registers_per_multiprocessor() / threads / 8 * 8);
}

double AtomicSeconds(const v1::TargetProfile& profile, double blocks, double bytes, int entry_bytes) {
  const double slower = entry_bytes == 8 ? 2 : 1;
  return profile.atomic_start_seconds().value() +
         blocks * slower *
             std::max(std::min(bytes, 128.0) / 16 * profile.atomic_line_seconds().value(),
                      bytes / profile.atomic_bytes_per_second().value());
}

}  // namespace fusion
