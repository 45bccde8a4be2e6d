// Values that the search produces and the code generator consumes: fusions, fusion implementations, covers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "server/graph/graph.h"
#include "server/graph/node_set.h"

namespace fusion {

// A set of nodes computed by one kernel.
struct Fusion {
  NodeSet nodes;
};

// The loop structure of a generated kernel (docs/internals.md).
enum class Skeleton {
  kElement,      // tiles of a mapped list
  kVector,       // one dimension: maps, and reductions to scalars
  kRowPanel,     // rows of a matrix: maps, row and column reductions, row results used again on the same row
  kCooperative,  // sweeps of vector and row-panel loops in one launch, with a barrier of the whole grid
                 // between them
  kScalar,       // scalars alone: one thread
};
const char* SkeletonName(Skeleton skeleton);  // "element", "vector", "row_panel", "cooperative", "scalar"

// Where a variable of a fusion lives.
enum class StorageClass {
  kRegisters,
  kShared,
  kDevice,  // kElement: not on chip; the functions that several threads compute read or write it in place
};

// Where one value lives. offset and size in entries of the shared array, for kShared.
struct PlacedValue {
  ValueId value;
  StorageClass storage = StorageClass::kRegisters;
  int64_t offset = 0;
  int64_t size = 0;  // from one element to the next
};
// Entries from one element to the next in shared memory. Elements of a multiple of 16 bytes are an odd
// multiple apart, so that neighbouring lanes which read 16 bytes of different elements meet in no bank.
int64_t SharedElementStride(int entries, int entry_bytes);
// Units of 16 bytes of an element whose units neighbouring lanes of a warp can exchange
// (LoadPath::kExchanged): 2, 4 or 8. 1: the element is no such.
int ExchangeableUnits(const Value& value);

// How a row-panel fusion uses the two dimensions of its matrices. Set for kRowPanel.
struct RowPanelRoles {
  Extent rows;
  Extent columns;
  // For each node of the fusion (order of FusionImplementation::order) and each of its dimensions: 0 row, 1
  // column.
  std::vector<std::vector<int>> roles;
  // For each node: the pass over the row in which it is computed. A row reduction of pass p is complete in
  // pass p + 1. kFinishPhase: computed after all rows, from column reductions or reductions to scalars.
  std::vector<int> phases;
  int phase_count = 1;
};
inline constexpr int kFinishPhase = 1 << 20;

// Rows of matrices that stay on the multiprocessor from one sweep of a cooperative fusion to the next.
struct KeptRows {
  std::vector<ValueId> values;
  int shared_rows = 0;    // of each group: its first ones
  int register_rows = 0;  // those of the last step that a sweep does
  bool filled = false;    // by an earlier sweep

  bool any() const { return shared_rows > 0 || register_rows > 0; }
};

enum class LoadPath {
  // Each thread loads what it needs; kElement: several threads of an element read it where it is.
  kDirect,
  kStaged,  // asynchronous copies to shared memory first (sm_80), and tiles of results back from it
  kBulk,    // the same by bulk copies that complete at an mbarrier (sm_90)
  // kElement: a warp loads the elements of its lanes 512 bytes at a time, and lanes exchange what they got;
  // results likewise.
  kExchanged,
};

// Parameters of a skeleton. Unused ones keep their default.
struct SkeletonParameters {
  int threads = 128;           // per block
  int elements_per_block = 0;  // kElement: elements of one tile
  int vector_width = 1;        // kVector, kRowPanel: consecutive entries per thread and load
  // kRowPanel: columns / (threads_per_row * vector_width) held in registers; 0: run-time loop.
  // kVector: one block alone has the whole vectors in registers, so many vectors of a lane; 0: the grid walks
  // over them.
  int chunks = 0;
  // kRowPanel: 32 (a warp), fewer for short rows (a power of two), `threads` (the block) or those of the
  // cluster
  int threads_per_row = 0;
  int cluster_blocks =
      1;           // kRowPanel with chunks: blocks that hold one row together, each a part of it (sm_90)
  int stages = 0;  // kRowPanel: rows in flight in shared memory (asynchronous copies); 0: plain loads
  bool hold_columns = false;  // kRowPanel with chunks: operands over the columns stay in registers
  // kRowPanel with chunks, not kBulk: at the sizes of the plan rows end within the last chunk, so that the
  // code without guards is for rows that fill all chunks but that one.
  bool ragged = false;
  int unroll = 1;  // kVector: vectors per thread and step
  // Persistent grid: blocks <= multiprocessors * this, each walks over many tiles. 0: one tile a block, as
  // many blocks as tiles.
  int blocks_per_multiprocessor = 1;
  int resident_blocks =
      1;  // kRowPanel, one tile a block: blocks of a multiprocessor that registers must permit
  LoadPath load_path = LoadPath::kDirect;
  int rows_per_step =
      1;  // kRowPanel with chunks: rows that a group does together; without stages all of them in registers
  // kRowPanel with chunks: rows are wider than chunks * threads * vector_width, and all of them are walked
  // over once for each such part of their columns. For column reductions alone, but with tile_rows.
  bool column_tiles = false;
  int tile_rows =
      0;  // kRowPanel with column_tiles: a block does so many rows of one part of the columns; 0: all parts
  bool reversed =
      false;  // kRowPanel: from the last row to the first, what an earlier sweep left in the cache first
  // Sums over the grid are added up in device memory, in any order: no partial results to combine, but other
  // last bits on every run. In cooperative fusions, whose blocks can wait until the sums are zero.
  bool atomic = false;
  // kVector, kRowPanel, plain loads of 16 bytes: that share of the inputs (KeptInL2) the L2 cache is asked to
  // keep for the next run; the rest of them, and results, it may give up first. 0: nothing is asked.
  int l2_percent = 0;
  // kElement, to measure routines, not for users: how often a block loads and computes each tile, with the
  // same results. Loads are of other tiles first; the elements must be a multiple of the tile.
  int load_repeats = 1, compute_repeats = 1;
  friend auto operator<=>(const SkeletonParameters&, const SkeletonParameters&) = default;
};

// Predicted time with its terms, seconds.
struct RunTimeEstimate {
  double bytes = 0;  // moved to and from device memory
  // Of the graph's inputs that the kernel reads and the outputs that it writes, each once: what has to be
  // moved.
  double floor_bytes = 0;
  double flops = 0;
  double occupancy = 1;  // resident threads / possible
  double memory_seconds = 0;
  double compute_seconds = 0;
  double barrier_seconds = 0;
  // What is lost beside the longest of memory, compute and alone: blocks that wait for loads, barriers or the
  // issue of instructions.
  double waiting_seconds = 0;
  double launch_seconds = 0;
  double issue_seconds = 0;    // that issuing all instructions takes, estimated; no term of the sum
  double resident_blocks = 1;  // of a multiprocessor at once
  double waves = 1;            // blocks of the grid over those that are resident at once
  double load =
      1;  // bytes on their way to the multiprocessors over those that the bandwidth needs (Little's law)
  bool measured_routines = false;  // memory and compute are from tables of routine times
  bool extended_routines = false;  // partly beyond what was measured
  // Otherwise, on devices with tables: the first routine of which none reaches so far. Empty: none is needed.
  std::string missing_routine;
  double alone_seconds = 0;  // then: of all routines one after the other, by blocks that share nothing
  double total_seconds = 0;  // with the correction
  double correction = 1;     // learned from measurements; the terms above are without it
  bool measured =
      false;  // the kernel itself was measured by an earlier job, which the correction makes of it
  int64_t measured_jobs = 0;    // then: by so many jobs; 0: not known
  int64_t measured_micros = 0;  // since 1970, by the last of them; 0: not known
  int registers = 0;            // estimated, per thread
  int64_t shared_bytes = 0;
  std::string ToString() const;
};

// Everything that is needed to generate the code of one kernel.
struct FusionImplementation {
  Fusion fusion;
  std::vector<NodeId> order;  // linearization
  std::vector<int>
      implementations;  // for each of `order`: position in Overload::implementations (ELEMENT), else 0
  Skeleton skeleton = Skeleton::kElement;
  SkeletonParameters parameters;
  std::vector<PlacedValue> placement;  // kElement: every value that the kernel touches
  int64_t shared_entries = 0;  // kElement: size of the shared array, in entries per element of the tile
  RowPanelRoles row_panel;
  KeptRows kept;                             // kRowPanel in a cooperative fusion
  std::vector<FusionImplementation> sweeps;  // kCooperative: in order; together they compute the nodes
  std::vector<ValueId> loads;                // values read from device memory, ascending
  std::vector<ValueId> stores;               // values written to device memory, ascending
  RunTimeEstimate estimate;
  // Deterministic, for people and logs: "{M1,v1} element T128 E128 staged [thread,thread]".
  std::string Describe(const Graph& graph) const;
};

// Of an element fusion that reads and writes by exchange: the largest ExchangeableUnits of its loads and
// stores. Those with as many are exchanged, others accessed directly.
int ExchangedUnits(const Graph& graph, const FusionImplementation& implementation);

// Of an element fusion: whether several threads of an element read some input where it is, in device memory.
bool ReadsInPlace(const FusionImplementation& implementation);

// Whether loads of the value say what the L2 cache is to do with it, where parameters.l2_percent is set.
bool KeptInL2(const Value& value, Skeleton skeleton);
// Whether what is kept is given up last; else the others are only given up first (docs/decisions/0021).
bool GivenUpLast(Skeleton skeleton);

// Into how many a function of sub-warp granularity divides each element. `choice`: position in
// Overload::implementations, which means nothing where the function goes entry by entry.
int ItemsPerElement(const Graph& graph, const Node& node, int choice);

// Whether the groups of a kernel that computes `kernel` may add their parts of a reduction over the grid to
// the stored result itself: a sum of parts in f64, which begins as a value that is at hand when the kernel
// starts. In f32 each of hundreds of groups would take its rounding from the sum.
bool AddsInPlace(const Graph& graph, const Node& reduction, const NodeSet& kernel);

// Disjoint fusion implementations that together compute the graph, in an order in which they can run.
struct Cover {
  std::vector<int> members;  // positions in the list of fusion implementations, in schedule order
  double predicted_seconds = 0;
};

}  // namespace fusion
