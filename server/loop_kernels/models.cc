#include "server/loop_kernels/models.h"

#include <algorithm>
#include <limits>

#include "server/target/target.h"

namespace fusion {
namespace {

constexpr double kLatencyCycles = 500;        // of a load on GPUs of today, assumed
constexpr double kBurdenOperations = 15'000;  // of a steal and its return, as Cilkview has it
constexpr double kWarpWords = 32, kHostLineWords = 16;
constexpr double kBytesOfWord = 4,
                 kHostPrivateBytes = 1 << 17;  // of a host's core, as case_finder.cc has it

}  // namespace

MachineParameters<Formula> SymbolicMachine() {
  const auto letter = [](const char* name) { return Formula(Polynomial::Symbol(name)); };
  return {.latency = letter("L"),
          .cores = letter("P"),
          .width = letter("C"),
          .private_words = letter("Z"),
          .cores_of_group = letter("Q"),
          .threads_per_core = letter("X"),
          .transfer = letter("U"),
          .burden = Formula(static_cast<int64_t>(kBurdenOperations))};
}

MachineParameters<double> MachineOf(const DeviceDescription& device) {
  const bool simt = TargetOf(device.target()).simt();
  const double cores = !simt ? 1 : device.arch() == "sm_75" || device.arch() == "sm_80" ? 64 : 128;
  const double bytes =
      simt ? static_cast<double>(device.shared_bytes_per_multiprocessor()) : kHostPrivateBytes;
  const double threads = simt ? device.max_threads_per_multiprocessor() / cores : 1;
  return {.latency = kLatencyCycles,
          .cores = cores * std::max(1, device.multiprocessors()),
          .width = simt ? kWarpWords : kHostLineWords,
          .private_words = bytes / kBytesOfWord,
          .cores_of_group = cores,
          .threads_per_core = std::max(1.0, threads),
          .transfer = kLatencyCycles,
          .burden = kBurdenOperations};
}

template <class Value>
PramMeasures<Value> Pram(const std::vector<LaunchCounts<Value>>& launches) {
  PramMeasures<Value> measures{Value(0), Value(0)};
  for (const LaunchCounts<Value>& launch : launches) {
    measures.time = measures.time + launch.launches * launch.operations;
    measures.processors = Larger(measures.processors, launch.blocks * launch.threads);
  }
  return measures;
}

template <class Value>
ForkJoinMeasures<Value> ForkJoin(const std::vector<LaunchCounts<Value>>& launches, const Value& burden) {
  ForkJoinMeasures<Value> measures{Value(0), Value(0), Value(0)};
  for (const LaunchCounts<Value>& launch : launches) {
    const Value iterations = launch.blocks * launch.threads, levels = Log2Up(iterations);
    measures.work = measures.work + launch.launches * iterations * launch.operations;
    measures.span = measures.span + launch.launches * (launch.operations + levels);
    measures.burdened_span =
        measures.burdened_span + launch.launches * (launch.operations + (burden + Value(1)) * levels);
  }
  return measures;
}

namespace {

// Threads of a core whose private words fit beside each other.
Formula ThreadsThatFit(const MachineParameters<Formula>& machine, const LaunchCounts<Formula>& launch) {
  return machine.private_words * launch.threads / (machine.cores_of_group * launch.block_words);
}
double ThreadsThatFit(const MachineParameters<double>& machine, const LaunchCounts<double>& launch) {
  if (launch.block_words <= 0) return std::numeric_limits<double>::infinity();
  return machine.private_words * launch.threads / (machine.cores_of_group * launch.block_words);
}

}  // namespace

template <class Value>
TmmMeasures<Value> Tmm(const std::vector<LaunchCounts<Value>>& launches,
                       const MachineParameters<Value>& machine) {
  TmmMeasures<Value> measures{Value(0), Value(0), Value(0), machine.threads_per_core};
  Value coalesced(0), scattered(0);
  for (const LaunchCounts<Value>& launch : launches) {
    const Value threads = launch.launches * launch.blocks * launch.threads;
    measures.work = measures.work + threads * launch.operations;
    measures.span = measures.span + launch.launches * launch.operations;
    coalesced = coalesced + threads * launch.coalesced;
    scattered = scattered + threads * launch.scattered;
    measures.threads = Smaller(measures.threads, ThreadsThatFit(machine, launch));
  }
  measures.memory = coalesced / machine.width + scattered;
  return measures;
}
double TmmTime(const TmmMeasures<double>& measures, const MachineParameters<double>& machine) {
  return std::max({measures.work / machine.cores, measures.span,
                   measures.memory * machine.latency / (measures.threads * machine.cores)});
}

template <class Value>
McmMeasures<Value> Mcm(const std::vector<LaunchCounts<Value>>& launches, const Value& transfer) {
  McmMeasures<Value> measures{Value(0), Value(0), Value(0), Value(0), Value(-1), Value(0), Value(0)};
  for (const LaunchCounts<Value>& launch : launches) {
    const Value blocks = launch.launches * launch.blocks;
    const Value overhead = (launch.coalesced + launch.threads * launch.scattered) * transfer;
    measures.work = measures.work + blocks * launch.threads * launch.operations;
    measures.span = measures.span + launch.launches * launch.operations;
    measures.overhead = measures.overhead + blocks * overhead;
    measures.vertices = measures.vertices + blocks;
    measures.edges = measures.edges + launch.launches;
    measures.antichain = Larger(measures.antichain, launch.blocks);
    measures.most = Larger(measures.most, launch.operations + overhead);
  }
  return measures;
}
double GrahamBrentBound(const McmMeasures<double>& measures, double multiprocessors) {
  const double together = std::max(1.0, std::min(measures.antichain, multiprocessors));
  return (measures.vertices / together + measures.edges) * measures.most;
}

const std::vector<ModelDescription>& ModelDescriptions() {
  static const auto* const kModels = new std::vector<ModelDescription>{
      {"PRAM", "Fortune and Wyllie 1978",
       "a step reads, computes and writes; so many steps as the longest thread has operations"},
      {"fork-join", "He, Leiserson and Leiserson 2010", "T_P <= work/P + 2*delta*burdened_span"},
      {"TMM", "Ma, Agrawal and Chamberlain 2014", "T_P = max(work/P, span, memory*L/(threads*P))"},
      {"MCM", "Haque, Moreno Maza and Xie 2015", "T_P <= (vertices/antichain + edges)*most"}};
  return *kModels;
}

template <class Value>
std::vector<Measure<Value>> MeasuresOf(const std::vector<LaunchCounts<Value>>& launches, const Value& cells,
                                       const MachineParameters<Value>& machine) {
  const PramMeasures<Value> pram = Pram(launches);
  const ForkJoinMeasures<Value> fork_join = ForkJoin(launches, machine.burden);
  const TmmMeasures<Value> tmm = Tmm(launches, machine);
  const McmMeasures<Value> mcm = Mcm(launches, machine.transfer);
  return {{"PRAM", "time", pram.time},
          {"PRAM", "processors", pram.processors},
          {"PRAM", "cells", cells},
          {"fork-join", "work", fork_join.work},
          {"fork-join", "span", fork_join.span},
          {"fork-join", "burdened_span", fork_join.burdened_span},
          {"TMM", "work", tmm.work},
          {"TMM", "span", tmm.span},
          {"TMM", "memory", tmm.memory},
          {"TMM", "threads", tmm.threads},
          {"MCM", "work", mcm.work},
          {"MCM", "span", mcm.span},
          {"MCM", "overhead", mcm.overhead},
          {"MCM", "vertices", mcm.vertices},
          {"MCM", "edges", mcm.edges},
          {"MCM", "antichain", mcm.antichain},
          {"MCM", "most", mcm.most}};
}

std::vector<Measure<double>> TimesOf(const std::vector<LaunchCounts<double>>& launches,
                                     const MachineParameters<double>& machine) {
  const ForkJoinMeasures<double> fork_join = ForkJoin(launches, machine.burden);
  const double groups = machine.cores / machine.cores_of_group;
  return {{"fork-join", "bound", fork_join.work / machine.cores + 2 * fork_join.burdened_span},
          {"TMM", "time", TmmTime(Tmm(launches, machine), machine)},
          {"MCM", "bound", GrahamBrentBound(Mcm(launches, machine.transfer), groups)}};
}

template PramMeasures<Formula> Pram(const std::vector<LaunchCounts<Formula>>&);
template PramMeasures<double> Pram(const std::vector<LaunchCounts<double>>&);
template ForkJoinMeasures<Formula> ForkJoin(const std::vector<LaunchCounts<Formula>>&, const Formula&);
template ForkJoinMeasures<double> ForkJoin(const std::vector<LaunchCounts<double>>&, const double&);
template TmmMeasures<Formula> Tmm(const std::vector<LaunchCounts<Formula>>&,
                                  const MachineParameters<Formula>&);
template TmmMeasures<double> Tmm(const std::vector<LaunchCounts<double>>&, const MachineParameters<double>&);
template McmMeasures<Formula> Mcm(const std::vector<LaunchCounts<Formula>>&, const Formula&);
template McmMeasures<double> Mcm(const std::vector<LaunchCounts<double>>&, const double&);
template std::vector<Measure<Formula>> MeasuresOf(const std::vector<LaunchCounts<Formula>>&, const Formula&,
                                                  const MachineParameters<Formula>&);
template std::vector<Measure<double>> MeasuresOf(const std::vector<LaunchCounts<double>>&, const double&,
                                                 const MachineParameters<double>&);

}  // namespace fusion
