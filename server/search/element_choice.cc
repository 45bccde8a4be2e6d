// Implementations of fusions over mapped lists: granularity of each function, load path, tile.
#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "server/search/allocate.h"
#include "server/search/fusion_shape.h"
#include "server/search/linearize.h"
#include "server/search/routine_times.h"

namespace fusion {
namespace {

// Unrolled code of a thread-per-element routine beyond this many operations per element takes long to compile
// and does not fit the instruction cache.
constexpr double kMaxUnrolledFlops = 20000;
// Compute efficiency, as shares of the peak: assumed, not measured. Routines are chains of short loops, and
// sub-warp ones read their operands from shared memory. They order candidates only where arithmetic, not
// memory, decides.
constexpr double kThreadEfficiencyCuda = 0.35, kSubWarpEfficiencyCuda = 0.12, kTileEfficiencyCuda = 0.3;
constexpr double kThreadEfficiencyHost = 0.12, kSubWarpEfficiencyHost = 0.02;

bool TiledResult(const Node& node, int choice) {
  return node.overload->form == v1::ELEMENT &&
         node.overload->implementations[choice].threads == v1::PER_RESULT_TILE;
}

int ChoiceCount(const Node& node) {
  if (node.dimensions.empty()) return 1;  // scalar node
  if (node.overload->form == v1::ELEMENT) return static_cast<int>(node.overload->implementations.size());
  return 2;  // entry by entry: a thread per element, or a thread per entry
}

// The largest number of elements up to `most`, or else the smallest, with which each value in shared memory
// begins at a multiple of 16 bytes.
int AlignedTile(const FusionImplementation& implementation, int most, int entry_bytes) {
  const auto aligned = [&](int elements) {
    return std::all_of(
        implementation.placement.begin(), implementation.placement.end(), [&](const PlacedValue& placed) {
          return placed.storage != StorageClass::kShared || placed.size * elements * entry_bytes % 16 == 0;
        });
  };
  for (int elements = most; elements > 0; --elements)
    if (aligned(elements)) return elements;
  return 16 / entry_bytes;
}

}  // namespace

int PlaceElementValues(const FusionShape& shape, FusionImplementation* implementation) {
  const Graph& graph = shape.graph;
  const bool staged = implementation->parameters.load_path == LoadPath::kStaged;
  // Phases as the code generator makes them: consecutive nodes of thread granularity share one.
  std::map<NodeId, int> phase_of;
  int phases = 0;
  bool previous_thread = false;
  std::map<ValueId, bool> touched_by_sub_warp;
  for (size_t i = 0; i < implementation->order.size(); ++i) {
    const Node& node = graph.node(implementation->order[i]);
    if (node.dimensions.empty()) continue;
    const bool thread = ByOneThread(node, implementation->implementations[i]);
    if (!(thread && previous_thread)) ++phases;
    previous_thread = thread;
    phase_of[node.id] = phases - 1;
    if (thread) continue;
    touched_by_sub_warp[node.result] = true;
    for (ValueId operand : node.operands) touched_by_sub_warp[operand] = true;
  }
  std::vector<ActiveInterval> intervals;
  std::vector<size_t> shared;
  implementation->placement.clear();
  int register_words = 0;
  auto place = [&](ValueId id, int first, int last, bool in_shared) {
    const Value& value = graph.value(id);
    PlacedValue placed{.value = id,
                       .storage = in_shared ? StorageClass::kShared : StorageClass::kRegisters,
                       .size = in_shared ? SharedElementStride(value.type.element_entries(),
                                                               DataTypeBytes(value.type.data_type))
                                         : value.type.element_entries()};
    if (in_shared) {
      intervals.push_back({first, last, placed.size});
      shared.push_back(implementation->placement.size());
    }
    implementation->placement.push_back(placed);
  };
  auto last_use = [&](ValueId id) {
    int last = 0;
    for (NodeId consumer : graph.value(id).consumers)
      if (auto it = phase_of.find(consumer); it != phase_of.end()) last = std::max(last, it->second);
    return last;
  };
  for (ValueId id : shape.loads)
    if (graph.value(id).type.mapped) place(id, 0, last_use(id), staged || touched_by_sub_warp.count(id));
  for (NodeId node_id : implementation->order) {
    const Node& node = graph.node(node_id);
    if (node.dimensions.empty()) continue;
    const bool stored = std::binary_search(shape.stores.begin(), shape.stores.end(), node.result);
    const int first = phase_of[node_id];
    // Stored tiles leave after the last phase.
    place(node.result, first, stored ? phases : std::max(first, last_use(node.result)),
          touched_by_sub_warp.count(node.result) || (stored && staged));
  }
  const Allocation allocation = AllocateExact(intervals);
  for (size_t i = 0; i < shared.size(); ++i)
    implementation->placement[shared[i]].offset = allocation.offsets[i];
  implementation->shared_entries = allocation.size;

  // Registers: the largest sum of register values active at one node.
  LinearizationProblem problem{.node_count = static_cast<int>(implementation->order.size())};
  for (const PlacedValue& placed : implementation->placement) {
    if (placed.storage != StorageClass::kRegisters) continue;
    FusionVariable variable{.size =
                                placed.size * DataTypeBytes(graph.value(placed.value).type.data_type) / 4};
    for (size_t i = 0; i < implementation->order.size(); ++i) {
      const Node& node = graph.node(implementation->order[i]);
      if (node.result == placed.value) variable.producer = static_cast<int>(i);
      if (std::find(node.operands.begin(), node.operands.end(), placed.value) != node.operands.end())
        variable.consumers.push_back(static_cast<int>(i));
    }
    problem.variables.push_back(std::move(variable));
  }
  std::vector<int> order(implementation->order.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  if (!problem.variables.empty()) register_words = static_cast<int>(ActiveSize(problem, order));
  return register_words;
}

void ChooseElement(const FusionShape& shape, int max_combinations, std::vector<FusionImplementation>* out,
                   std::string* reason) {
  const Graph& graph = shape.graph;
  const DeviceDescription& device = shape.model.device();
  FusionImplementation base = shape.Base();
  const FusionVariables variables = FusionVariablesOf(
      graph, shape.nodes,
      [](const Value& value) -> int64_t { return value.type.mapped ? value.type.element_entries() : 0; },
      false);
  const Linearization linearization = Linearize(variables.problem);
  for (size_t i = 0; i < linearization.order.size(); ++i)
    base.order[i] = variables.nodes[linearization.order[i]];

  const double elements = std::max<double>(1, static_cast<double>(shape.Size(Extent{.name = kElementsSize})));
  const double flops_per_element = shape.flops / elements;
  int64_t combinations = 1;
  for (NodeId id : base.order)
    combinations = std::min<int64_t>(combinations * ChoiceCount(graph.node(id)), 1 << 30);

  std::vector<std::vector<int>> choices;
  if (combinations <= max_combinations) {
    for (int64_t c = 0; c < combinations; ++c) {
      std::vector<int> choice;
      int64_t rest = c;
      for (NodeId id : base.order) {
        const int count = ChoiceCount(graph.node(id));
        choice.push_back(static_cast<int>(rest % count));
        rest /= count;
      }
      choices.push_back(std::move(choice));
    }
  } else {  // all of the first choice, then one node at a time with each of its others
    choices.emplace_back(base.order.size(), 0);
    for (size_t i = 0; i < base.order.size(); ++i)
      for (int k = 1; k < ChoiceCount(graph.node(base.order[i])); ++k) {
        choices.emplace_back(base.order.size(), 0);
        choices.back()[i] = k;
      }
  }

  struct Tile {
    int threads, elements;
  };
  for (const std::vector<int>& choice : choices) {
    bool all_thread = true, any_thread = false;
    int items_per_element = 1;  // of the function that divides them most
    double sub_warp_flops = 0, tile_flops = 0;
    for (size_t i = 0; i < choice.size(); ++i) {
      const Node& node = graph.node(base.order[i]);
      if (node.dimensions.empty()) continue;
      const bool thread = ByOneThread(node, choice[i]);
      all_thread &= thread;
      any_thread |= thread;
      if (!thread) {
        sub_warp_flops += NodeFlops(graph, node, shape.sizes);
        items_per_element = std::max(items_per_element, ItemsPerElement(graph, node, choice[i]));
      }
      if (TiledResult(node, choice[i])) tile_flops += NodeFlops(graph, node, shape.sizes);
    }
    if (any_thread && flops_per_element - sub_warp_flops / elements > kMaxUnrolledFlops) {
      *reason = absl::StrCat("a thread would do ", flops_per_element,
                             " operations per element; the limit for unrolled code is ", kMaxUnrolledFlops);
      continue;
    }
    std::vector<LoadPath> paths = {LoadPath::kStaged};
    if (all_thread)
      paths =
          shape.cuda() ? std::vector{LoadPath::kStaged, LoadPath::kDirect} : std::vector{LoadPath::kDirect};
    if (all_thread && shape.cuda() && ExchangedUnits(graph, base) > 1) paths.push_back(LoadPath::kExchanged);
    std::vector<Tile> tiles;
    if (shape.cuda())
      tiles = all_thread ? std::vector<Tile>{{64, 64}, {128, 128}, {256, 256}}
                         : std::vector<Tile>{{128, 16}, {128, 32}, {256, 32}, {256, 64}, {128, 128}};
    else
      tiles = all_thread ? std::vector<Tile>{{32, 32}, {128, 128}, {512, 512}}
                         : std::vector<Tile>{{16, 16}, {64, 64}};
    // A block that ends with its tile leaves its place to the loads of the next one while its own stores are
    // under way.
    const std::vector<bool> one_shots =
        shape.cuda() ? std::vector<bool>{true, false} : std::vector<bool>{false};
    for (LoadPath path : paths) {
      FusionImplementation placed = base;
      placed.implementations = choice;
      placed.parameters.load_path = path;
      const int value_words = PlaceElementValues(shape, &placed);
      // Large elements: smaller tiles, so that several blocks of a multiprocessor load, compute and store at
      // different times.
      constexpr int64_t kLargeElementBytes = 1024;
      std::vector<Tile> sizes = tiles;
      if (shape.cuda() && !all_thread && placed.shared_entries * shape.entry_bytes > kLargeElementBytes)
        sizes.insert(sizes.end(), {{128, 4}, {256, 4}, {128, 8}, {256, 8}});
      // Two items a thread of small blocks, of which a multiprocessor holds many: products of 32 x 32
      // matrices at 1.06 times the floor, 1.09 with twice the threads (H200,
      // kernels by hand).
      if (shape.cuda() && !all_thread)
        sizes.push_back(
            {64, AlignedTile(placed, std::clamp(128 / items_per_element, 1, 64), shape.entry_bytes)});
      for (const Tile& tile : sizes)
        for (bool one_shot : one_shots) {
          FusionImplementation implementation = placed;
          SkeletonParameters& parameters = implementation.parameters;
          parameters.threads = tile.threads;
          parameters.elements_per_block = tile.elements;
          KernelTraits traits = shape.Traits();
          traits.threads = tile.threads;
          traits.registers =
              value_words + (any_thread && shape.cuda() ? 44 : 24);  // addresses and the insides of routines
          traits.shared_bytes = implementation.shared_entries * tile.elements * shape.entry_bytes;
          if (traits.shared_bytes > device.shared_bytes_per_block()) {
            *reason =
                absl::StrCat("a tile of ", tile.elements, " elements needs ", traits.shared_bytes,
                             " bytes of shared memory; the device has ", device.shared_bytes_per_block());
            continue;
          }
          if (shape.cuda() && traits.registers > 240) {
            *reason = absl::StrCat("a thread would need about ", traits.registers,
                                   " registers; the device has 255");
            continue;
          }
          int resident =
              shape.cuda() ? ResidentBlocks(device, tile.threads, traits.registers, traits.shared_bytes) : 1;
          if (resident == 0) continue;
          parameters.blocks_per_multiprocessor = one_shot ? 0 : resident;
          const double tile_bytes = shape.bytes_read / elements * tile.elements;
          const double all_tiles = elements / tile.elements + 1;
          traits.blocks = static_cast<int64_t>(
              one_shot ? all_tiles : std::min(all_tiles, double(device.multiprocessors()) * resident));
          if (path == LoadPath::kStaged) {
            traits.bytes_in_flight_per_block =
                0.5 * tile_bytes;  // half of the time the block computes and stores
          } else {
            traits.bytes_in_flight_per_block = std::min(tile_bytes, 128.0 * tile.threads);
            // Neighbouring threads read addresses far apart; sectors are shared through the L1 cache, mostly.
            if (shape.cuda() && path == LoadPath::kDirect && shape.bytes_read / elements > 16)
              traits.access_efficiency = 0.7;
          }
          const double sub_warp_share = shape.flops > 0 ? sub_warp_flops / shape.flops : 0;
          const double thread_efficiency = shape.cuda() ? kThreadEfficiencyCuda : kThreadEfficiencyHost;
          const double sub_warp_efficiency = shape.cuda() ? kSubWarpEfficiencyCuda : kSubWarpEfficiencyHost;
          const double tile_share = shape.cuda() && shape.flops > 0 ? tile_flops / shape.flops : 0;
          traits.compute_efficiency =
              1 / ((1 - sub_warp_share) / thread_efficiency + tile_share / kTileEfficiencyCuda +
                   (sub_warp_share - tile_share) / sub_warp_efficiency);
          std::string missing;
          traits.routines = RoutineSecondsOf(graph, shape.model, implementation, resident,
                                             std::ceil(elements / tile.elements), &missing);
          implementation.estimate = shape.model.Estimate(traits);
          out->push_back(std::move(implementation));
        }
    }
  }
}

}  // namespace fusion
