// Implementations of fusions over mapped lists: granularity of each function, load path, tile.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/skeletons/element/allocate.h"
#include "server/skeletons/element/element.h"
#include "server/skeletons/element/routine_times.h"
#include "server/skeletons/element/tiles.h"
#include "server/skeletons/shared/host_costs.h"
#include "server/skeletons/shared/linearize.h"
#include "server/target/target.h"

namespace fusion {
namespace {

// Unrolled code of a thread-per-element routine beyond this many operations per element takes long to compile
// and does not fit the instruction cache.
constexpr double kMaxUnrolledFlops = 20000;
// Returns the threads that compute an element by a choice of a node, ENTRY for what goes entry by entry.
v1::ThreadsPerElement ThreadsOf(const Node& node, int choice) {
  if (node.overload->form != v1::ELEMENT) return choice == 0 ? v1::ONE : v1::PER_RESULT_ENTRY;
  return node.overload->implementations[choice].threads;
}

// Compute efficiency, as shares of the peak. Routines are chains of short loops, and sub-warp ones read their
// operands from shared memory: assumed; or, in place, from the L1 cache: of products of 2^26 entries on an
// H100 (kernels by hand), 0.18 by tiles of 32 x 32 f32 and f64, 0.105 by quads of 16 x 16 f32, 0.05 by
// entries of 8 x 8 f64. Tensor cores have twice the peak of f64; memory hides what they take. They order
// candidates only where arithmetic, not memory, decides.
double EfficiencyOf(const Node& node, int choice, const CostModel& model, bool in_place) {
  const bool thread = ByOneThread(node, choice);
  if (!model.target().simt()) return thread ? 0.12 : 0.02;
  if (thread) return 0.35;
  switch (ThreadsOf(node, choice)) {
    case v1::PER_RESULT_TILE:
      return in_place ? 0.18 : 0.3;
    case v1::PER_RESULT_QUAD:
      return in_place ? 0.105 : 0.12;
    case v1::WARP_PER_8_ROWS:  // by tensor cores where these compute in f64
      return model.features().f64_matrix_units ? 0.6 : 0.3;
    default:
      return in_place ? 0.05 : 0.12;
  }
}

int ChoiceCount(const Node& node) {
  if (node.dimensions.empty()) return 1;  // scalar node
  if (node.overload->form == v1::ELEMENT) return static_cast<int>(node.overload->implementations.size());
  return 2;  // entry by entry: a thread per element, or a thread per entry
}

// Returns whether the threads that compute an element of the result read operands and write it side by side,
// 32 bytes and more at once: then in device memory as well as in shared memory. Products of 8 x 8 f32 by
// tiles, with rows of 32 bytes, took 4.09 us so and 3.13 through shared memory; of 16 x 16, 2.72 and 2.83; of
// 32 x 32, 3.27 and 3.36 (507,904 entries on an H100, kernels by hand).
bool SideBySide(const Graph& graph, const Node& node, int choice) {
  const std::vector<int>& shape = graph.value(node.result).type.element_shape;
  switch (ThreadsOf(node, choice)) {
    case v1::PER_RESULT_TILE:
      return !shape.empty() && shape.back() % 4 == 0 && shape.back() >= 16;
    case v1::PER_RESULT_QUAD:
    case v1::PER_RESULT_ENTRY:
    case v1::WARP_PER_8_ROWS:
      return true;
    default:
      return false;
  }
}

// Returns whether a choice is there: implementations may have conditions.
bool ChoiceOffered(const Graph& graph, const Node& node, int choice) {
  if (node.dimensions.empty() || node.overload->form != v1::ELEMENT) return true;
  return Offered(*node.overload, node.overload->implementations[choice], node.static_parameters,
                 graph.value(node.result).type.data_type);
}

// Returns a few of too many combinations: all of the first choice; one node at a time with each of its
// others; and all with several threads for an element, those of one kind where a node has it, else one an
// entry. `offered`: the choices of each node.
std::vector<std::vector<int>> FewChoices(const Graph& graph, const std::vector<NodeId>& order,
                                         const std::vector<std::vector<int>>& offered) {
  std::vector<std::vector<int>> choices = {std::vector<int>(order.size(), 0)};
  for (size_t i = 0; i < order.size(); ++i)
    for (int k : offered[i]) {
      if (k == 0) continue;
      choices.emplace_back(order.size(), 0);
      choices.back()[i] = k;
    }
  for (const v1::ThreadsPerElement kind : {v1::PER_RESULT_ENTRY, v1::PER_RESULT_ROW, v1::PER_RESULT_TILE,
                                           v1::PER_RESULT_QUAD, v1::WARP_PER_8_ROWS}) {
    std::vector<int> choice;
    bool has_kind = false;
    for (size_t i = 0; i < order.size(); ++i) {
      const Node& node = graph.node(order[i]);
      int chosen = 0;
      for (int k : offered[i]) {
        if (ThreadsOf(node, k) == kind) chosen = k, has_kind = true;
        if (ThreadsOf(node, k) == v1::PER_RESULT_ENTRY && ThreadsOf(node, chosen) != kind) chosen = k;
      }
      choice.push_back(chosen);
    }
    if (has_kind && std::find(choices.begin(), choices.end(), choice) == choices.end())
      choices.push_back(std::move(choice));
  }
  return choices;
}

// A choice for each node of `order`: every combination of what is offered, or a few of too many.
std::vector<std::vector<int>> ChoicesOf(const Graph& graph, const std::vector<NodeId>& order,
                                        int max_combinations) {
  std::vector<std::vector<int>> offered;  // of each node; the first always is
  int64_t combinations = 1;
  for (NodeId id : order) {
    std::vector<int>& own = offered.emplace_back();
    for (int k = 0; k < ChoiceCount(graph.node(id)); ++k)
      if (ChoiceOffered(graph, graph.node(id), k)) own.push_back(k);
    combinations = std::min<int64_t>(combinations * static_cast<int64_t>(own.size()), 1 << 30);
  }
  if (combinations > max_combinations) return FewChoices(graph, order, offered);
  std::vector<std::vector<int>> choices;
  for (int64_t c = 0; c < combinations; ++c) {
    std::vector<int> choice;
    int64_t rest = c;
    for (const std::vector<int>& own : offered) {
      choice.push_back(own[rest % own.size()]);
      rest /= static_cast<int64_t>(own.size());
    }
    choices.push_back(std::move(choice));
  }
  return choices;
}

// Bytes that the L2 cache is asked to write where each thread stores an element of its own by single entries:
// those of as many sectors of 32 bytes as the stores of a warp touch. St. Venant of 2^20 elements (results of
// 36 bytes) took 71 to 83 us so on an H100 and 36 through shared memory; the routine by itself, in shorter
// lists, does not show it.
double ScatteredBytes(const FusionShape& shape, const FusionImplementation& placed) {
  constexpr double kSector = 32;
  const LoadPath path = placed.As<ElementParameters>().load_path;
  if (path == LoadPath::kStaged) return 0;
  double bytes = 0;
  for (ValueId id : shape.stores) {
    const Value& value = shape.graph.value(id);
    const double entry = DataTypeBytes(value.type.data_type), element = value.type.element_entries() * entry;
    if (!value.type.mapped || std::fmod(element, 16) == 0) continue;
    if (path == LoadPath::kExchanged && ExchangeableUnits(value) >= ExchangedUnits(shape.graph, placed))
      continue;
    bytes += value.type.Bytes(shape.sizes) / entry * std::min(kSector, element);
  }
  return bytes;
}

// Phases as the code generator makes them, with barriers between where values are in shared memory:
// consecutive nodes of thread granularity share one.
struct Phases {
  std::map<NodeId, int> of;     // of mapped nodes, from 0
  int all = 0, by_several = 0;  // all of them, and those by several threads for an element
};
Phases PhasesOf(const Graph& graph, const FusionImplementation& implementation) {
  Phases phases;
  bool previous_thread = false;
  for (size_t i = 0; i < implementation.order.size(); ++i) {
    const Node& node = graph.node(implementation.order[i]);
    if (node.dimensions.empty()) continue;
    const bool thread = ByOneThread(node, implementation.As<ElementParameters>().choices[i]);
    phases.all += !(thread && previous_thread);
    phases.by_several += !thread;
    previous_thread = thread;
    phases.of[node.id] = phases.all - 1;
  }
  return phases;
}

// Adds the time that blocks wait for their loads in each turn, and in each phase in which several threads
// compute an element: between barriers, and in the first turn until the code of the phase is there. Function
// I of 2^20 elements on an H100, with five such phases, took 166 to 191 us by tiles of 32 and 64 elements
// where loads take 129 to 136 and computations 23 to 71; of 31,744 elements, nearly all at once, 13.3 to 16.5
// us where a thread for an element, in one phase, took 10.6. Fitted to 240 kernels of five graphs on an H100
// and an H200, whose loads and functions had been measured as routines (docs/decisions/0007). Kernels of one
// phase overlap as others do: products of 16 x 16 and 32 x 32 matrices are at the memory's rate. But a staged
// block computes when all of its loads are there, and the fewer blocks there are beside it, the fewer load
// meanwhile: St. Venant of 2^20 elements on four H100s takes 33 us with 16 blocks of 64 threads, 34 with 8 of
// 128 and 36 to 39 with 4 of 256, where the tables of its routines have 28, 27 and 26.
void AddWaiting(const FusionShape& shape, const Phases& phases, bool staged, int resident, double tiles,
                KernelTraits* traits) {
  constexpr double kTurn = 0.6e-6, kPhase = 0.5e-6, kCode = 0.6e-6, kFewBlocks = 3.4;
  traits->waiting_seconds =
      TurnsOf(shape.model, resident, tiles).turns * (kTurn + kPhase * phases.by_several);
  traits->phases_apart = phases.all > 1;
  // Where the kernel has just run the code is in the caches.
  if (shape.model.back_to_back()) return;
  traits->barrier_seconds = kCode * phases.by_several;
  if (staged && !traits->phases_apart && traits->routines)
    traits->waiting_seconds += kFewBlocks * traits->routines->compute / resident;
}

// On the host, of all lanes (KernelTraits::instructions). Entries of elements lie apart, so much is done one
// by one. `alone`: a thread does all of an element.
double HostElementOperations(const FusionShape& shape, int elements_per_block, bool alone) {
  constexpr double kOperation = 9;
  const double turns = elements_per_block >= 512 ? 1 : elements_per_block >= 128 ? 1.3 : 1.5;
  return kOperation * shape.flops * (alone ? turns : 2);
}

}  // namespace

int PlaceElementValues(const FusionShape& shape, FusionImplementation* implementation, bool stores_in_place) {
  const Graph& graph = shape.graph;
  const bool staged = implementation->As<ElementParameters>().load_path == LoadPath::kStaged;
  const Phases phases = PhasesOf(graph, *implementation);
  std::set<ValueId> touched_by_sub_warp, touched_by_thread;
  for (size_t i = 0; i < implementation->order.size(); ++i) {
    const Node& node = graph.node(implementation->order[i]);
    if (node.dimensions.empty()) continue;
    std::set<ValueId>& touched = ByOneThread(node, implementation->As<ElementParameters>().choices[i])
                                     ? touched_by_thread
                                     : touched_by_sub_warp;
    touched.insert(node.result);
    touched.insert(node.operands.begin(), node.operands.end());
  }
  std::vector<ActiveInterval> intervals;
  std::vector<size_t> shared;
  implementation->As<ElementParameters>().placement.clear();
  int register_words = 0;
  auto place = [&](ValueId id, int first, int last, StorageClass storage) {
    const Value& value = graph.value(id);
    const bool in_shared = storage == StorageClass::kShared;
    PlacedValue placed{.value = id,
                       .storage = storage,
                       .size = in_shared ? SharedElementStride(value.type.element_entries(),
                                                               DataTypeBytes(value.type.data_type))
                                         : value.type.element_entries()};
    if (in_shared) {
      intervals.push_back({first, last, placed.size});
      shared.push_back(implementation->As<ElementParameters>().placement.size());
    }
    implementation->As<ElementParameters>().placement.push_back(placed);
  };
  auto last_use = [&](ValueId id) {
    int last = 0;
    for (NodeId consumer : graph.value(id).consumers)
      if (auto it = phases.of.find(consumer); it != phases.of.end()) last = std::max(last, it->second);
    return last;
  };
  const auto storage_of = [&](ValueId id, bool in_place) {
    const bool several = touched_by_sub_warp.contains(id);
    if (several && in_place && !touched_by_thread.contains(id)) return StorageClass::kDevice;
    return several || staged ? StorageClass::kShared : StorageClass::kRegisters;
  };
  for (ValueId id : shape.loads)
    if (graph.value(id).type.mapped) place(id, 0, last_use(id), storage_of(id, !staged));
  for (size_t i = 0; i < implementation->order.size(); ++i) {
    const Node& node = graph.node(implementation->order[i]);
    if (node.dimensions.empty()) continue;
    const bool stored = std::binary_search(shape.stores.begin(), shape.stores.end(), node.result);
    const bool read_again =
        std::any_of(graph.value(node.result).consumers.begin(), graph.value(node.result).consumers.end(),
                    [&](NodeId consumer) { return phases.of.contains(consumer); });
    const int first = phases.of.at(node.id);
    if (!stored && !touched_by_sub_warp.contains(node.result)) {
      place(node.result, first, std::max(first, last_use(node.result)), StorageClass::kRegisters);
      continue;
    }
    const bool in_place = stores_in_place && shape.simt() && stored && !read_again &&
                          SideBySide(graph, node, implementation->As<ElementParameters>().choices[i]);
    // Stored tiles leave after the last phase.
    place(node.result, first, stored ? phases.all : std::max(first, last_use(node.result)),
          storage_of(node.result, in_place));
  }
  const Allocation allocation = AllocateExact(intervals);
  for (size_t i = 0; i < shared.size(); ++i)
    implementation->As<ElementParameters>().placement[shared[i]].offset = allocation.offsets[i];
  implementation->As<ElementParameters>().shared_entries = allocation.size;

  // Registers: the largest sum of register values active at one node.
  LinearizationProblem problem{.node_count = static_cast<int>(implementation->order.size())};
  for (const PlacedValue& placed : implementation->As<ElementParameters>().placement) {
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

namespace {

constexpr int kMostRegisters = 240;  // estimates are coarse

double ElementsOf(const FusionShape& shape) {
  return std::max<double>(1, static_cast<double>(shape.Size(Extent{.name = kElementsSize})));
}

// A choice of routines with a way of loading, whatever the tile.
struct PlacedChoice {
  FusionImplementation implementation;
  bool all_thread = true, any_thread = false;  // a thread computes all, or any, of an element
  int value_words = 0;                         // registers of values
  Phases phases;
  double at_peak = 0;  // operations that take the same time at the peak rate
};

// Returns the kernel for a tile; nothing where the device cannot run it, of which *miss is told.
std::optional<FusionImplementation> MakeTile(const FusionShape& shape, const PlacedChoice& placed,
                                             const Tile& tile, bool one_shot, NearestMiss* miss) {
  const DeviceDescription& device = shape.model.device();
  const double elements = ElementsOf(shape);
  FusionImplementation implementation = placed.implementation;
  auto& parameters = implementation.As<ElementParameters>();
  parameters.threads = tile.threads;
  parameters.elements_per_block = tile.elements;
  KernelTraits traits = shape.Traits();
  traits.threads = tile.threads;
  traits.registers = placed.value_words +
                     (placed.any_thread && shape.simt() ? 44 : 24);  // addresses and the insides of routines
  traits.shared_bytes =
      implementation.As<ElementParameters>().shared_entries * tile.elements * shape.entry_bytes;
  if (traits.shared_bytes > device.shared_bytes_per_block()) {
    miss->Note(traits.shared_bytes, device.shared_bytes_per_block(),
               absl::StrCat("a tile of ", tile.elements, tile.elements == 1 ? " element" : " elements",
                            " needs ", traits.shared_bytes, " bytes of shared memory; the device has ",
                            device.shared_bytes_per_block(), " a block"));
    return std::nullopt;
  }
  if (shape.simt() && traits.registers > kMostRegisters) {
    miss->Note(traits.registers, kMostRegisters,
               absl::StrCat("a thread would need about ", traits.registers, " registers; at most ",
                            kMostRegisters, " of the 255 that the device has are planned for"));
    return std::nullopt;
  }
  int resident =
      shape.simt() ? ResidentBlocks(device, tile.threads, traits.registers, traits.shared_bytes) : 1;
  if (resident == 0) return std::nullopt;
  parameters.blocks_per_multiprocessor = one_shot ? 0 : resident;
  const double tile_bytes = shape.bytes_read / elements * tile.elements;
  const double all_tiles = elements / tile.elements + 1, full_tiles = std::ceil(elements / tile.elements);
  traits.blocks = static_cast<int64_t>(
      one_shot ? all_tiles : std::min(all_tiles, double(device.multiprocessors()) * resident));
  if (parameters.load_path == LoadPath::kStaged) {
    traits.bytes_in_flight_per_block = 0.5 * tile_bytes;  // half of the time the block computes and stores
  } else {
    traits.bytes_in_flight_per_block = std::min(tile_bytes, 128.0 * tile.threads);
    // Neighbouring threads read addresses far apart; sectors are shared through the L1 cache, mostly.
    if (shape.simt() && parameters.load_path == LoadPath::kDirect && placed.all_thread &&
        shape.bytes_read / elements > 16)
      traits.access_efficiency = 0.7;
  }
  if (shape.simt() && placed.all_thread) traits.scattered_bytes = ScatteredBytes(shape, implementation);
  if (placed.at_peak > 0) traits.compute_efficiency = shape.flops / placed.at_peak;
  if (!shape.simt()) {
    traits.instructions = HostElementOperations(shape, tile.elements, placed.all_thread);
    traits.issue_overlap = shape.profile().lane_overlap().value();
  }
  std::string missing;
  traits.routines =
      RoutineSecondsOf(shape.graph, shape.model, implementation, resident, full_tiles, &missing);
  if (!traits.routines && !shape.model.routines().empty()) traits.missing_routine = missing;
  if (shape.simt())
    AddWaiting(shape, placed.phases, parameters.load_path == LoadPath::kStaged, resident, full_tiles,
               &traits);
  implementation.estimate = shape.model.Estimate(traits);
  return implementation;
}

}  // namespace

void ConfigureElement(const FusionShape& shape, int max_combinations, std::vector<FusionImplementation>* out,
                      NearestMiss* miss) {
  const Graph& graph = shape.graph;
  FusionImplementation base = shape.Base();
  base.parameters = ElementParameters();
  const FusionVariables variables = FusionVariablesOf(
      graph, shape.nodes,
      [](const Value& value) -> int64_t { return value.type.mapped ? value.type.element_entries() : 0; },
      false);
  const Linearization linearization = Linearize(variables.problem);
  for (size_t i = 0; i < linearization.order.size(); ++i)
    base.order[i] = variables.nodes[linearization.order[i]];

  const double elements = ElementsOf(shape), flops_per_element = shape.flops / elements;
  const std::vector<std::vector<int>> choices = ChoicesOf(graph, base.order, max_combinations);
  for (const std::vector<int>& choice : choices) {
    bool all_thread = true, any_thread = false, side_by_side = true;
    int items_per_element = 1;  // of the function that divides them most
    double sub_warp_flops = 0;
    for (size_t i = 0; i < choice.size(); ++i) {
      const Node& node = graph.node(base.order[i]);
      if (node.dimensions.empty()) continue;
      const bool thread = ByOneThread(node, choice[i]);
      all_thread &= thread;
      any_thread |= thread;
      side_by_side &= thread || SideBySide(graph, node, choice[i]);
      if (!thread) {
        sub_warp_flops += NodeFlops(graph, node, shape.sizes);
        items_per_element = std::max(items_per_element, ItemsPerElement(graph, node, choice[i]));
      }
    }
    if (any_thread && flops_per_element - sub_warp_flops / elements > kMaxUnrolledFlops) {
      miss->Note(flops_per_element, kMaxUnrolledFlops,
                 absl::StrCat("a thread would do ", flops_per_element,
                              " operations per element; the limit for unrolled code is ", kMaxUnrolledFlops));
      continue;
    }
    std::vector<LoadPath> paths = {LoadPath::kStaged};
    if (!shape.simt() && all_thread)
      paths = {LoadPath::kDirect};
    else if (shape.simt() && (all_thread || (!any_thread && side_by_side)))
      paths.push_back(LoadPath::kDirect);
    if (all_thread && shape.simt() && ExchangedUnits(graph, base) > 1) paths.push_back(LoadPath::kExchanged);
    // A block that ends with its tile leaves its place to the loads of the next one while its own stores are
    // under way.
    const std::vector<bool> one_shots =
        shape.simt() ? std::vector<bool>{true, false} : std::vector<bool>{false};
    for (LoadPath path : paths) {
      PlacedChoice placed{.implementation = base, .all_thread = all_thread, .any_thread = any_thread};
      auto& parameters = placed.implementation.As<ElementParameters>();
      parameters.choices = choice;
      parameters.load_path = path;
      placed.value_words = PlaceElementValues(shape, &placed.implementation);
      // Inputs that the threads of an element read where they are.
      const bool in_place = ReadsInPlace(placed.implementation);
      if (parameters.shared_entries > 0) placed.phases = PhasesOf(graph, placed.implementation);
      if (path == LoadPath::kDirect && !all_thread && !in_place) continue;
      for (size_t i = 0; i < choice.size(); ++i) {
        const Node& node = graph.node(base.order[i]);
        placed.at_peak +=
            NodeFlops(graph, node, shape.sizes) / EfficiencyOf(node, choice[i], shape.model, in_place);
      }
      const size_t before = out->size();
      for (const Tile& tile : TilesOf(shape, placed.implementation,
                                      {all_thread, any_thread, choices.size() == 1, items_per_element})) {
        if (tile.idle && out->size() > before) continue;
        for (bool one_shot : one_shots)
          if (auto made = MakeTile(shape, placed, tile, one_shot, miss)) out->push_back(*std::move(made));
      }
    }
  }
}

}  // namespace fusion
