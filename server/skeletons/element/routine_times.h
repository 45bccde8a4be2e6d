// Tables of routine times predict the times of element fusions (Fousek 2010, section 4.4), and these kernels
// measure the tables.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/graph/graph.h"
#include "server/model/cost_model.h"
#include "server/plan/plan.h"
#include "server/skeletons/shared/load_path.h"

namespace fusion {

// Routines as tables name them. `shared`: operands and result in shared memory (a staged kernel), else in
// registers. Transfers are to and from shared memory, registers, or registers by exchange.
// "mmul_tile<f32,3,3,3> shared"
std::string ComputeRoutine(const Graph& graph, const Node& node, int choice, bool shared);
std::string LoadRoutine(const Value& value, LoadPath path);  // "load f32[9] shared"
std::string StoreRoutine(const Value& value, LoadPath path);

// A grid takes `tiles` tiles, at least 1, in these turns where `resident` blocks, at least 1, fit a
// multiprocessor.
struct Turns {
  double blocks;  // on a multiprocessor at once
  double turns;   // turns of these blocks, one tile each, until all tiles are done
};
Turns TurnsOf(const CostModel& model, int resident, double tiles);

// Returns the times of the routines of an element fusion's implementation with `resident` blocks on each
// multiprocessor and `tiles` tiles in all, on a device whose tables the model has. Nothing when a table is
// missing or does not reach so far; *missing then names the routine.
std::optional<RoutineSeconds> RoutineSecondsOf(const Graph& graph, const CostModel& model,
                                               const FusionImplementation& implementation, int resident,
                                               double tiles, std::string* missing);

// A source (.fuse) of one function, whose routines are measured by kernels of that function alone.
struct RoutineSource {
  std::string text;
  bool transfers = false;  // the loads and stores are measured, not the function
};
// Returns the sources for all functions of elements, and all lists of elements, of the graph; each once, in a
// deterministic order.
std::vector<RoutineSource> RoutineSourcesOf(const Graph& graph);

// A kernel that works through its tiles in a persistent grid, to be repeated and given extra shared memory.
struct RoutineKernel {
  std::string routine;  // repeating its loads, or else its computation, measures this
  FusionImplementation implementation;
};
// Returns, for a graph made from a RoutineSource, one kernel for each way and tile of the table's points.
std::vector<RoutineKernel> RoutineKernels(const Graph& graph, const SizeValues& sizes, const CostModel& model,
                                          bool transfers);

}  // namespace fusion
