// What the choices for each skeleton share. Internal to server/search.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/search/implementation_choice.h"
#include "server/search/nearest_miss.h"
#include "server/search/skeleton_rules.h"

namespace fusion {

// A feasible fusion with everything that does not depend on parameters.
struct FusionShape {
  const Graph& graph;
  const SizeValues& sizes;
  const CostModel& model;
  NodeSet nodes;
  std::vector<int> members;  // in the order in which a kernel computes them (member_order.h)
  SkeletonAnswer skeleton;
  std::vector<ValueId> loads, stores;
  double bytes_read = 0, bytes_written = 0, flops = 0;
  double instructions = 0;  // of the computations, without loads and stores
  int entry_bytes = 4;      // of the widest data type
  int grid_reductions = 0;  // reductions that the finish kernel completes

  bool cuda() const { return model.device().target() == v1::CUDA; }
  int compute_capability() const;  // 90 for sm_90; 0 on the host
  int64_t Size(const Extent& extent) const { return extent.Size(sizes); }
  const Node& node(int member) const { return graph.node(NodeId{member}); }
  // Whether the reduction members[i] is complete only when the whole grid is done: not one over the rows of a
  // panel.
  bool IsGridReduction(size_t i) const;
  // Of all that the node computes, without loads and stores; part of `instructions`.
  double InstructionsOf(const Node& node) const;
  // An implementation with all but parameters, placement and estimate.
  FusionImplementation Base() const;
  KernelTraits Traits() const;
};

FusionShape ShapeOfFusion(const Graph& graph, const NodeSet& nodes, const SizeValues& sizes,
                          const CostModel& model, SkeletonAnswer skeleton);

// Of an element fusion: one thread does all that the node does for an element.
inline bool ByOneThread(const Node& node, int choice) {
  return node.overload->form == v1::ELEMENT ? node.overload->implementations[choice].granularity == v1::THREAD
                                            : choice == 0;
}

// SkeletonParameters::l2_percent for kernels of the graph that may use it; 0: asking the cache is of no use.
int L2Percent(const FusionShape& shape);
// What a kernel with that share then finds in the cache.
void ReadFromL2(const FusionShape& shape, int percent, KernelTraits* traits);

// Append every legal choice of parameters to *out; *miss is told of those that do not fit.
void ChooseElement(const FusionShape& shape, int max_combinations, std::vector<FusionImplementation>* out,
                   NearestMiss* miss);
void ChooseVector(const FusionShape& shape, std::vector<FusionImplementation>* out);
void ChooseRowPanel(const FusionShape& shape, std::vector<FusionImplementation>* out, NearestMiss* miss);
// Sweeps in one launch: `sweeps` has the shape of each. Nothing when that gives no advantage over launches of
// their own. `deterministic`: no sums whose order may differ from run to run.
void ChooseCooperative(const Graph& graph, const NodeSet& nodes, const std::vector<FusionShape>& sweeps,
                       bool deterministic, std::vector<FusionImplementation>* out, NearestMiss* miss);
// The same where all sweeps are over vectors, short enough for the registers of one block.
void ChooseBlockVector(const Graph& graph, const NodeSet& nodes, const std::vector<FusionShape>& sweeps,
                       std::vector<FusionImplementation>* out);

// Compute efficiency of loops of fused multiply-adds with loads between, as a share of the peak: assumed.
inline constexpr double kLoopComputeEfficiency = 0.5;

// A grid that walks over many rows loses against one row a block, where the device starts the loads of new
// blocks while old ones still store: as VADD of 2^26 entries by hand, 0.94 to 0.96 of the rate on an H200
// (tests/bench/device, results/h200-device.txt).
inline constexpr double kPersistentEfficiency = 0.94;

// Of a vector fusion: most values of one entry that are live at once, in the order of the nodes: what is
// loaded until it was read last, results until they were; what is only stored, at once; accumulators always.
int MostLiveVectors(const FusionShape& shape);
// A barrier of a block alone, and what its lanes then find in the caches: assumed.
inline constexpr double kBlockBarrierSeconds = 0.1e-6;

// One implementation with the parameters given, where blocks_per_multiprocessor is the most wanted and
// becomes what fits; none when not even one block fits. *out: what its estimate was made from.
std::optional<FusionImplementation> MakeVector(const FusionShape& shape, const SkeletonParameters& given,
                                               KernelTraits* out);

// What the lanes of a row panel must keep.
struct RowPanelNeeds {
  int matrices = 0;  // read
  int stored_matrices = 0;
  int held_inputs = 0;         // of these, used again in a later phase
  int column_operands = 0;     // vectors over the columns that are read
  int live_rows = 0;           // most held matrices at the end of a phase, in rows
  int live_computed_rows = 0;  // of computed ones alone
  int row_reductions = 0;
  int64_t accumulator_bytes = 0;  // of one column
  int64_t long_sum_bytes = 0;     // beside them, of one column
  bool columns_alone =
      true;  // nothing is reduced or computed over rows, or to scalars: any part of the columns will do
  // Nothing over the matrix waits for a row's reduction, and nothing is reduced to scalars: a block may have
  // a part of the columns, and what it reduces of a row is put together with the others' parts later.
  bool row_parts = true;
};
RowPanelNeeds NeedsOfRowPanel(const FusionShape& shape);
// Whether blocks that have rows of their own leave multiprocessors without work.
bool HasFewRows(const FusionShape& shape);
// Appends tiles of some rows and a part of the columns, by `add`, for blocks of so many threads: where only
// columns are reduced; and, of few rows, where row_parts permits.
void AddColumnTiles(const FusionShape& shape, const RowPanelNeeds& needs, int width, int threads,
                    const std::function<void(SkeletonParameters)>& add);
void AddFewRowTiles(const FusionShape& shape, const RowPanelNeeds& needs,
                    const std::function<void(SkeletonParameters)>& add);
// What SkeletonParameters::ragged is to be for rows of so many columns.
bool HasRaggedRows(const SkeletonParameters& parameters, int64_t columns);
// Bytes of shared memory for one row of one matrix of each group of a block.
int64_t RowSlotBytes(const FusionShape& shape, const SkeletonParameters& parameters);
// Load paths through shared memory that the device has, each with a number of stages.
std::vector<std::pair<LoadPath, int>> StagedPaths(const FusionShape& shape);
// Rows that a group may do together: short ones, so that their reductions share barriers and latencies and
// more of them are under way at once.
std::vector<int> RowsPerStep(const FusionShape& shape, const RowPanelNeeds& needs);
// The same without stages, all in registers: those of kRowsInRegisters for which there is room.
// `entries_per_row`: of a lane.
inline constexpr int kRowsInRegisters[] = {4, 8, 16};
std::vector<int> RowsInRegisters(const FusionShape& shape, const RowPanelNeeds& needs, int entries_per_row);
// Registers that a thread may have where so many threads are on a multiprocessor, at least one: they are
// given by eights. Estimates are coarse, and the compiler keeps to the limit of the launch bounds whatever
// they are: up to kRegisterSlack more may fit without spilling (RMS norm: 60 estimated, 59 used) or not, and
// what spills loses when it is timed.
int MostRegisters(const DeviceDescription& device, int threads);
inline constexpr int kRegisterSlack = 16;
// Bytes of static shared memory with which the threads of a block reduce `count` values at once.
inline constexpr int64_t ReductionScratchBytes(int count) { return int64_t{1024} * count; }
// Of `blocks` blocks that all add to the same `bytes`: additions to one line of the cache wait for each
// other, 1.55 ns for 16 bytes, and all lines together take 1.7 TB/s. Fits 0.39, 1.96 and 5.43 us for 4, 2048
// and 16384 f32 with 132 blocks on an H200 (tests/bench/device, results/h200-device.txt). Of entries of 8
// bytes half as many are added in the same time (2048 f64 with 132 blocks: 4 to 6 us in kernels of sgemvt
// written by hand, 3.6 by this).
inline double AtomicSeconds(double blocks, double bytes, int entry_bytes) {
  const double slower = entry_bytes == 8 ? 2 : 1;
  return 0.3e-6 + blocks * slower * std::max(std::min(bytes, 128.0) / 16 * 1.55e-9, bytes / 1.7e12);
}
// Vector widths that the rows' alignment permits, widest first.
std::vector<int> RowVectorWidths(const FusionShape& shape);
std::optional<FusionImplementation> MakeRowPanel(const FusionShape& shape, const RowPanelNeeds& needs,
                                                 const SkeletonParameters& given, int64_t kept_bytes,
                                                 KernelTraits* out, NearestMiss* miss);

// Places the values of an element fusion for given implementations and load path (order, implementations and
// parameters.load_path are set). Returns the registers that a thread needs for values, in 32-bit words.
// `stores_in_place`: results of several threads may be written by these, not through shared memory.
int PlaceElementValues(const FusionShape& shape, FusionImplementation* implementation,
                       bool stores_in_place = true);

}  // namespace fusion
