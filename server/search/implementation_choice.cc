#include "server/search/implementation_choice.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/model/architecture.h"
#include "server/search/fusion_shape.h"
#include "server/search/host_costs.h"
#include "server/search/kernel_identity.h"
#include "server/search/member_order.h"

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

namespace {

// Instructions that one entry of these functions takes on a GPU in f32, by CUDA's own routines: powers of
// two, corrections, ranges. Others take one for each operation.
double EntryInstructions(const std::string& function, double flops) {
  static const std::map<std::string, double> kInstructions = {
      {"exp", 10},   {"log", 18}, {"tanh", 20}, {"erf", 25},     {"div", 5},  {"coldiv", 5},
      {"rowdiv", 2}, {"vdiv", 5}, {"recip", 5}, {"sigmoid", 16}, {"sqrt", 4}, {"rsqrt", 6}};
  const auto known = kInstructions.find(function);
  return known == kInstructions.end() ? flops : std::max(flops, known->second);
}

}  // namespace

int FusionShape::compute_capability() const { return ComputeCapability(model.device()); }

bool FusionShape::IsGridReduction(size_t i) const {
  const Node& reduction = node(members[i]);
  if (!reduction.is_reduction()) return false;
  const bool to_rows = skeleton.skeleton == Skeleton::kRowPanel && reduction.dimensions.size() == 2 &&
                       !reduction.result_map.empty() &&
                       skeleton.row_panel.roles[i][reduction.result_map[0]] == 0;
  return !to_rows;
}

double FusionShape::InstructionsOf(const Node& node) const {
  double points = 1;
  for (const NodeDimension& dimension : node.dimensions)
    points *= static_cast<double>(Size(dimension.extent));
  const double flops = NodeFlops(graph, node, sizes) / std::max(points, 1.0);
  const std::string& name = node.function->name;
  return points * (cuda() ? EntryInstructions(name, flops) : HostEntryOperations(name, flops));
}

FusionImplementation FusionShape::Base() const {
  FusionImplementation implementation;
  implementation.fusion.nodes = nodes;
  for (int member : members) implementation.order.push_back(NodeId{member});
  implementation.implementations.assign(members.size(), 0);
  implementation.skeleton = skeleton.skeleton;
  implementation.row_panel = skeleton.row_panel;
  implementation.loads = loads;
  implementation.stores = stores;
  return implementation;
}

KernelTraits FusionShape::Traits() const {
  KernelTraits traits;
  traits.bytes_read = bytes_read;
  traits.bytes_written = bytes_written;
  traits.flops = entry_bytes == 8 && cuda() ? F32OverF64(compute_capability()) * flops : flops;
  traits.launches = grid_reductions > 0 ? 2 : 1;
  return traits;
}

namespace {

// Everything that follows the members with them.
void OrderByRegisters(FusionShape* shape) {
  if (shape->members.size() < 3) return;  // nothing to gain
  const MemberOrder order = OrderMembers(shape->graph, shape->members, shape->skeleton);
  if (std::is_sorted(order.positions.begin(), order.positions.end())) return;
  const std::vector<int> members = std::exchange(shape->members, {});
  const RowPanelRoles panel = shape->skeleton.row_panel;
  RowPanelRoles& ordered = shape->skeleton.row_panel;
  ordered.roles.clear();
  ordered.phases.clear();
  for (int position : order.positions) {
    shape->members.push_back(members[position]);
    if (panel.phases.empty()) continue;
    ordered.roles.push_back(panel.roles[position]);
    ordered.phases.push_back(panel.phases[position]);
  }
}

}  // namespace

FusionShape ShapeOfFusion(const Graph& graph, const NodeSet& nodes, const SizeValues& sizes,
                          const CostModel& model, SkeletonAnswer skeleton) {
  FusionShape shape{.graph = graph,
                    .sizes = sizes,
                    .model = model,
                    .nodes = nodes,
                    .members = nodes.Members(),
                    .skeleton = std::move(skeleton)};
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

int L2Percent(const FusionShape& shape) {
  // Set by hand, on an H200 and an H100 (docs/decisions/0021). Not all of the cache, perhaps because
  // lines that both halves of the chip read are in both halves of the cache; less where results pass through
  // it too. Results beside inputs that do not nearly fit are slower with any share: MADD f64 of 2048 square,
  // 100 MB.
  constexpr double kShare = 0.5, kLeastData = 0.5, kMostDataWithResults = 1.4, kNearlyFits = 0.8;
  if (!shape.cuda() || shape.compute_capability() < 80 || !shape.model.back_to_back()) return 0;
  double inputs = 0, results = 0;
  for (ValueId input : shape.graph.inputs())
    if (KeptInL2(shape.graph.value(input), Skeleton::kVector))
      inputs += shape.graph.value(input).type.Bytes(shape.sizes);
  for (ValueId output : shape.graph.outputs()) results += shape.graph.value(output).type.Bytes(shape.sizes);
  const double cache = shape.model.device().l2_bytes();
  if (inputs == 0 || inputs + results < kLeastData * cache) return 0;
  const bool beside_results = results >= inputs / 4;
  if (beside_results && inputs + results > kMostDataWithResults * cache) return 0;
  const double beside =
      GivenUpLast(shape.skeleton.skeleton) || inputs + results <= kNearlyFits * cache ? 0.3 : 0.2;
  const double share = std::min(1.0, (beside_results ? beside : kShare) * cache / inputs);
  const int percent = static_cast<int>(20 * share) * 5;
  return percent < 10 ? 0 : percent;
}

void ReadFromL2(const FusionShape& shape, int percent, KernelTraits* traits) {
  for (ValueId value : shape.loads) {
    if (!KeptInL2(shape.graph.value(value), shape.skeleton.skeleton)) continue;
    const double bytes = percent / 100.0 * shape.graph.value(value).type.Bytes(shape.sizes);
    traits->bytes_read -= bytes;
    traits->cache_bytes += bytes;
  }
}

Structure StructureOf(const FusionImplementation& implementation) {
  const SkeletonParameters& parameters = implementation.parameters;
  bool keeps_rows = false, in_both = false;
  for (const FusionImplementation& sweep : implementation.sweeps)
    keeps_rows |= sweep.kept.any(), in_both |= sweep.kept.register_rows > 0 && sweep.kept.shared_rows > 0;
  const auto& choices = implementation.implementations;
  const bool several = std::any_of(choices.begin(), choices.end(), [](int choice) { return choice > 0; }),
             all_several = std::all_of(choices.begin(), choices.end(), [](int choice) { return choice > 0; });
  const int most_choice = several ? *std::max_element(choices.begin(), choices.end()) : 0;
  return {.skeleton = implementation.skeleton,
          .load_path = parameters.load_path,
          .one_shot = parameters.blocks_per_multiprocessor == 0,
          .reads_again = implementation.skeleton == Skeleton::kRowPanel && parameters.chunks == 0,
          .in_groups = implementation.skeleton == Skeleton::kRowPanel &&
                       parameters.threads_per_row < parameters.threads,
          .in_batches = parameters.stages == 0 && parameters.rows_per_step > 1,
          .keeps_rows = keeps_rows,
          .in_both = in_both,
          .in_clusters = parameters.cluster_blocks > 1,
          .several_threads = several ? all_several ? most_choice : 1 : 0,
          .in_tiles = parameters.tile_rows > 0,
          .in_one_block = implementation.skeleton == Skeleton::kVector && parameters.chunks > 0,
          .atomic = parameters.atomic,
          .in_l2 = parameters.l2_percent > 0};
}

namespace {

// The best predicted half of `keep`, and of each structure in turn the next best. Order is kept.
void KeepDifferent(int keep, std::vector<FusionImplementation>* all) {
  if (static_cast<int>(all->size()) <= keep) return;
  std::map<Structure, std::vector<size_t>> structures;
  std::vector<bool> chosen(all->size(), false);
  int count = 0;
  for (size_t i = 0; i < all->size(); ++i) {
    const FusionImplementation& implementation = (*all)[i];
    if (count < (keep + 1) / 2) {
      chosen[i] = true;
      ++count;
      continue;
    }
    structures[StructureOf(implementation)].push_back(i);
  }
  for (size_t turn = 0; count < keep; ++turn)
    for (const auto& [structure, members] : structures)
      if (turn < members.size() && count < keep) {
        chosen[members[turn]] = true;
        ++count;
      }
  std::vector<FusionImplementation> kept;
  for (size_t i = 0; i < all->size(); ++i)
    if (chosen[i]) kept.push_back(std::move((*all)[i]));
  *all = std::move(kept);
}

// Of the graph's inputs that the kernel reads and the outputs that it writes.
double FloorBytes(const Graph& graph, const FusionImplementation& implementation, const SizeValues& sizes) {
  double bytes = 0;
  for (ValueId id : implementation.loads)
    if (const Value& value = graph.value(id); !value.producer && !value.literal)
      bytes += static_cast<double>(value.type.Bytes(sizes));
  for (ValueId id : implementation.stores)
    if (std::find(graph.outputs().begin(), graph.outputs().end(), id) != graph.outputs().end())
      bytes += static_cast<double>(graph.value(id).type.Bytes(sizes));
  return bytes;
}

}  // namespace

std::vector<FusionImplementation> ImplementFusion(const Graph& graph, const NodeSet& nodes,
                                                  const SizeValues& sizes, const CostModel& model,
                                                  const ImplementationOptions& options, std::string* reason) {
  SkeletonAnswer skeleton = ChooseSkeleton(graph, nodes);
  std::vector<FusionImplementation> all;
  NearestMiss miss;
  if (skeleton.feasible) {
    const FusionShape shape = ShapeOfFusion(graph, nodes, sizes, model, skeleton);
    switch (shape.skeleton.skeleton) {
      case Skeleton::kElement:
        ChooseElement(shape, options.max_combinations, &all, &miss);
        break;
      case Skeleton::kVector:
      case Skeleton::kScalar:
        ChooseVector(shape, &all);
        break;
      case Skeleton::kRowPanel:
        ChooseRowPanel(shape, &all, &miss);
        break;
      case Skeleton::kCooperative:
        break;
    }
  } else {
    *reason = skeleton.reason;
  }
  if (model.device().target() == v1::CUDA) {
    std::vector<FusionShape> sweeps;
    for (auto& [sweep, answer] : SplitIntoSweeps(graph, nodes))
      sweeps.push_back(ShapeOfFusion(graph, sweep, sizes, model, std::move(answer)));
    if (!sweeps.empty()) {
      ChooseCooperative(graph, nodes, sweeps, options.deterministic, &all, &miss);
      ChooseBlockVector(graph, nodes, sweeps, &all);
    }
  }
  if (!miss.text().empty()) *reason = miss.text();
  const FamilyTimes measured = options.measured && !all.empty() ? options.measured(nodes) : FamilyTimes();
  for (FusionImplementation& implementation : all) {
    implementation.estimate.floor_bytes = FloorBytes(graph, implementation, sizes);
    if (measured.empty())
      model.Correct(&implementation);
    else
      model.Correct(measured, VariantOf(graph, implementation), &implementation);
  }
  std::stable_sort(all.begin(), all.end(), [](const FusionImplementation& a, const FusionImplementation& b) {
    return a.estimate.total_seconds < b.estimate.total_seconds;
  });
  std::vector<FusionImplementation> wanted;
  if (options.wanted) {
    std::copy_if(all.begin(), all.end(), std::back_inserter(wanted), options.wanted);
    if (nodes.Size() > 1) all = std::exchange(wanted, {});
    if (static_cast<int>(wanted.size()) > options.keep) wanted.resize(options.keep);
    if (all.empty()) *reason = "no implementation is as asked for";
  }
  constexpr double kHopeless = 4;  // times the best prediction
  while (!all.empty() && all.back().estimate.total_seconds > kHopeless * all.front().estimate.total_seconds)
    all.pop_back();
  KeepDifferent(options.keep, &all);
  for (FusionImplementation& implementation : wanted) {
    const auto same = [&](const FusionImplementation& other) {
      return other.parameters == implementation.parameters &&
             other.implementations == implementation.implementations &&
             other.Describe(graph) == implementation.Describe(graph);
    };
    if (std::any_of(all.begin(), all.end(), same)) continue;
    const auto place = std::upper_bound(all.begin(), all.end(), implementation,
                                        [](const FusionImplementation& a, const FusionImplementation& b) {
                                          return a.estimate.total_seconds < b.estimate.total_seconds;
                                        });
    all.insert(place, std::move(implementation));
  }
  return all;
}

FusionImplementation ReferenceImplementation(const Graph& graph, NodeId id, const SizeValues& sizes,
                                             const CostModel& model) {
  NodeSet nodes;
  nodes.Add(id.value);
  const FusionShape shape = ShapeOfFusion(graph, nodes, sizes, model, ChooseSkeleton(graph, nodes));
  FusionImplementation implementation = shape.Base();
  SkeletonParameters& parameters = implementation.parameters;
  parameters.blocks_per_multiprocessor = shape.cuda() ? 8 : 4;
  switch (implementation.skeleton) {
    case Skeleton::kElement:
      parameters.threads = parameters.elements_per_block = 64;
      PlaceElementValues(shape, &implementation);
      break;
    case Skeleton::kVector:
    case Skeleton::kScalar:
      parameters.threads = 256;
      break;
    case Skeleton::kCooperative:
      break;  // never the answer for one node
    case Skeleton::kRowPanel: {
      parameters.threads = parameters.threads_per_row = 256;
      // Column accumulators in shared memory; where they do not fit, in registers, of a part of the columns
      // at a time if that will do.
      const int64_t columns = shape.Size(implementation.row_panel.columns);
      if (shape.grid_reductions > 0 && columns * 16 > model.device().shared_bytes_per_block()) {
        parameters.threads = parameters.threads_per_row = 1024;
        parameters.blocks_per_multiprocessor = 1;
        parameters.column_tiles = NeedsOfRowPanel(shape).columns_alone;
        parameters.chunks = parameters.column_tiles ? 4 : static_cast<int>((columns + 1023) / 1024);
      }
      break;
    }
  }
  return implementation;
}

}  // namespace fusion
