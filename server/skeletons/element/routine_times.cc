#include "server/skeletons/element/routine_times.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/skeletons/element/element.h"
#include "server/skeletons/skeletons.h"

namespace fusion {
namespace {

const char* TypeText(v1::DataType type) { return type == v1::F64 ? "f64" : "f32"; }

std::string EntriesText(const Value& value) {
  return absl::StrCat(TypeText(value.type.data_type), "[", value.type.element_entries(), "]");
}

// Where one thread does all for an element and no other thread takes part, blocks make no difference: what
// counts is how many threads are at it on a multiprocessor. On GPUs tables have such routines for blocks of
// kThreadsOfTable.
constexpr int kThreadsOfTable = 64;

std::optional<RoutineTime> OfThreads(const CostModel& model, const std::string& routine,
                                     const ElementParameters& parameters, double resident) {
  if (!model.target().simt())
    return model.routines().Time(routine, parameters.threads, parameters.elements_per_block, resident);
  // Fewer threads than the table has are taken to need as long as those, for each has its latencies alone;
  // that was not measured.
  const double blocks =
      std::min(parameters.threads, parameters.elements_per_block) * resident / kThreadsOfTable;
  auto time = model.routines().Time(routine, kThreadsOfTable, kThreadsOfTable, std::max(1.0, blocks));
  if (time && blocks < 1) time->extended = true;
  return time;
}

std::optional<RoutineTime> OfBlocks(const CostModel& model, const std::string& routine,
                                    const ElementParameters& parameters, double resident) {
  return model.routines().Time(routine, parameters.threads, parameters.elements_per_block, resident);
}

// Returns the path of a value to an element fusion, and from it.
LoadPath PathOf(const Graph& graph, const FusionImplementation& implementation, const Value& value) {
  const LoadPath path = implementation.As<ElementParameters>().load_path;
  const bool direct =
      path == LoadPath::kExchanged && ExchangeableUnits(value) < ExchangedUnits(graph, implementation);
  return direct ? LoadPath::kDirect : path;
}
const char* PathText(LoadPath path) {
  return path == LoadPath::kStaged ? " shared" : path == LoadPath::kExchanged ? " exchanged" : " registers";
}

// Times of a block for one tile.
struct PassSeconds {
  double loads = 0, stores = 0, computes = 0;
  bool extended = false;
};

// The terms of equation 4.4 while `resident` blocks share each multiprocessor.
std::optional<PassSeconds> PassSecondsOf(const Graph& graph, const CostModel& model,
                                         const FusionImplementation& implementation, double resident,
                                         double working, std::string* missing) {
  const auto& parameters = implementation.As<ElementParameters>();
  // Tables have no functions that read device memory themselves.
  if (ReadsInPlace(implementation)) return std::nullopt;
  const bool of_lanes = parameters.load_path != LoadPath::kStaged;  // no other warp takes part
  PassSeconds pass;
  const auto ask = [&](const std::string& routine, bool of_threads) -> std::optional<double> {
    const auto time = of_threads ? OfThreads(model, routine, parameters, resident)
                                 : OfBlocks(model, routine, parameters, resident);
    if (!time) {
      *missing = routine;
      return std::nullopt;
    }
    pass.extended |= time->extended;
    return time->seconds;
  };
  // Loads are under way together: each takes its share of the bandwidth, and they wait for memory once.
  const double rate = model.device().copy_bytes_per_second() / (resident * working);
  double wait = 0;
  for (ValueId id : implementation.loads) {
    const Value& value = graph.value(id);
    if (!value.type.mapped) continue;
    const auto seconds = ask(LoadRoutine(value, PathOf(graph, implementation, value)), of_lanes);
    if (!seconds) return std::nullopt;
    const double transfer = parameters.elements_per_block * value.type.element_entries() *
                            DataTypeBytes(value.type.data_type) / rate;
    pass.loads += std::min(transfer, *seconds);
    wait = std::max(wait, *seconds - transfer);
  }
  pass.loads += wait;
  for (ValueId id : implementation.stores) {
    const Value& value = graph.value(id);
    if (!value.type.mapped) continue;
    const auto seconds = ask(StoreRoutine(value, PathOf(graph, implementation, value)), of_lanes);
    if (!seconds) return std::nullopt;
    pass.stores += *seconds;
  }
  // Tables know results that are written in place as ones in shared memory, with the store apart.
  const auto in_shared = [&](ValueId id) {
    for (const PlacedValue& placed : implementation.As<ElementParameters>().placement)
      if (placed.value == id) return placed.storage != StorageClass::kRegisters;
    return false;
  };
  for (size_t i = 0; i < implementation.order.size(); ++i) {
    const Node& node = graph.node(implementation.order[i]);
    if (node.dimensions.empty()) continue;  // scalars
    const int choice = implementation.As<ElementParameters>().choices[i];
    const bool one_thread = ByOneThread(node, choice);
    const bool shared =
        in_shared(node.result) || std::any_of(node.operands.begin(), node.operands.end(), in_shared);
    const auto seconds = ask(ComputeRoutine(graph, node, choice, shared), one_thread);
    if (!seconds) return std::nullopt;
    pass.computes += *seconds;
  }
  return pass;
}

std::string Declaration(const Value& value, const std::string& name) {
  return absl::StrCat(value.type.ToString(), " ", name, ";\n");
}

}  // namespace

Turns TurnsOf(const CostModel& model, int resident, double tiles) {
  const double multiprocessors = std::max(1, model.device().multiprocessors());
  const double blocks = std::min<double>(resident, std::ceil(tiles / multiprocessors));
  return {blocks, std::ceil(tiles / (multiprocessors * blocks))};
}

std::string ComputeRoutine(const Graph& graph, const Node& node, int choice, bool shared) {
  const std::string type = TypeText(graph.value(node.result).type.data_type);
  std::string name;
  if (node.overload->form == v1::ELEMENT) {
    name = absl::StrCat(node.overload->implementations[choice].routine, "<", type);
    for (int parameter : node.static_parameters) absl::StrAppend(&name, ",", parameter);
    absl::StrAppend(&name, ">");
  } else {
    name = absl::StrCat(node.overload->routine, "<", EntriesText(graph.value(node.result)),
                        choice == 0 ? ",thread>" : ",entry>");
  }
  return absl::StrCat(name, shared ? " shared" : " registers");
}

std::string LoadRoutine(const Value& value, LoadPath path) {
  return absl::StrCat("load ", EntriesText(value), PathText(path));
}
std::string StoreRoutine(const Value& value, LoadPath path) {
  return absl::StrCat("store ", EntriesText(value), PathText(path));
}

std::optional<RoutineSeconds> RoutineSecondsOf(const Graph& graph, const CostModel& model,
                                               const FusionImplementation& implementation, int resident,
                                               double tiles, std::string* missing) {
  const double multiprocessors = std::max(1, model.device().multiprocessors());
  const Turns turns = TurnsOf(model, resident, tiles);
  const double working = std::min(multiprocessors, tiles);
  const auto together = PassSecondsOf(graph, model, implementation, turns.blocks, working, missing);
  const auto alone = PassSecondsOf(graph, model, implementation, 1, working, missing);
  if (!together || !alone) return std::nullopt;
  RoutineSeconds seconds;
  seconds.memory = turns.turns * (together->loads + together->stores);
  seconds.compute = turns.turns * together->computes;
  seconds.alone = turns.turns * (alone->loads + alone->stores + alone->computes);
  seconds.extended = together->extended || alone->extended;
  return seconds;
}

std::vector<RoutineSource> RoutineSourcesOf(const Graph& graph) {
  std::set<std::string> functions, transfers;
  for (const Node& node : graph.nodes()) {
    if (!node.mapped()) continue;
    std::string text, inputs, arguments;
    std::vector<std::string> names;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const Value& value = graph.value(node.operands[k]);
      names.push_back(absl::StrCat("x", k));
      absl::StrAppend(&text, Declaration(value, names.back()));
    }
    absl::StrAppend(&text, Declaration(graph.value(node.result), "y"));
    const std::string operands = absl::StrJoin(names, ", ");
    functions.insert(absl::StrCat(text, "input ", operands, ";\ny = ", node.function->name, "(", operands,
                                  ");\nreturn y;\n"));
  }
  for (const Value& value : graph.values())
    if (value.type.mapped)
      transfers.insert(absl::StrCat(Declaration(value, "x"), Declaration(value, "y"),
                                    "input x;\ny = neg(x);\nreturn y;\n"));
  std::vector<RoutineSource> sources;
  for (const std::string& text : functions) sources.push_back({text, false});
  for (const std::string& text : transfers) sources.push_back({text, true});
  return sources;
}

std::vector<RoutineKernel> RoutineKernels(const Graph& graph, const SizeValues& sizes, const CostModel& model,
                                          bool transfers) {
  constexpr int kEveryCombination = 1000;
  const Node& node = graph.nodes().front();
  NodeSet nodes;
  nodes.Add(node.id.value);
  const FusionShape shape = ShapeOfFusion(graph, nodes, sizes, model, ChooseSkeleton(graph, nodes));
  std::vector<FusionImplementation> all;
  NearestMiss miss;
  ConfigureElement(shape, kEveryCombination, &all, &miss);
  std::vector<RoutineKernel> kernels;
  std::set<std::tuple<std::string, int, int>> present;
  for (FusionImplementation& implementation : all) {
    const auto& parameters = implementation.As<ElementParameters>();
    if (parameters.blocks_per_multiprocessor == 0) continue;
    const int choice = implementation.As<ElementParameters>().choices.front();
    const bool shared = parameters.load_path == LoadPath::kStaged, one_thread = ByOneThread(node, choice);
    std::string routine = ComputeRoutine(graph, node, choice, shared);
    if (!shared && !one_thread) continue;
    // Computed without the stores, which are measured apart.
    PlaceElementValues(shape, &implementation, false);
    if (implementation.As<ElementParameters>().shared_entries * parameters.elements_per_block *
            shape.entry_bytes >
        model.device().shared_bytes_per_block())
      continue;
    if (transfers) {
      const Value& operand = graph.value(node.operands.front());
      routine = LoadRoutine(operand, PathOf(graph, implementation, operand));
    }
    // These times do not depend on the block: one number of threads is enough.
    if (shape.simt() && (transfers ? !shared : one_thread) && parameters.threads != kThreadsOfTable) continue;
    if (!present.emplace(routine, parameters.threads, parameters.elements_per_block).second) continue;
    kernels.push_back({std::move(routine), std::move(implementation)});
  }
  return kernels;
}

}  // namespace fusion
