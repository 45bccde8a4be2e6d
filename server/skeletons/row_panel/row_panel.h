// Kernels over rows of matrices: maps, row and column reductions, and row results used again on the same row.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/skeletons/row_panel/parameters.h"
#include "server/skeletons/skeleton.h"

namespace fusion {

const Skeleton& RowPanelSkeleton();
inline bool IsRowPanel(const FusionShape& shape) { return shape.skeleton == &RowPanelSkeleton(); }

// Says which nodes run over rows and which over columns, and in which phase each is computed, or why one loop
// over the rows does not do (rules.cc).
SkeletonAnswer RowPanelAnswer(const Graph& graph, const NodeSet& nodes);
absl::StatusOr<FusionCode> LowerRowPanel(LoweringContext& context);

// Sets the features of loops over rows. `rows`: parameters of the kernel's first loop; `in_loop`: rows
// are walked in a run-time loop.
void SetRowFeatures(const RunTimeEstimate& estimate, const RowPanelParameters& rows, bool one_tile,
                    bool in_loop, ResidualFeatures* features);

// The lanes of a row panel must keep this.
struct RowPanelNeeds {
  int matrices = 0;  // read
  int stored_matrices = 0;
  int held_inputs = 0;         // matrices read that a later phase uses again
  int column_operands = 0;     // vectors over the columns that are read
  int live_rows = 0;           // most held matrices at the end of a phase, in rows
  int live_computed_rows = 0;  // of computed ones alone
  int row_reductions = 0;
  int64_t accumulator_bytes = 0;  // of one column
  int64_t long_sum_bytes = 0;     // beside them, of one column
  // Nothing is reduced or computed over rows, or to scalars: any part of the columns will do.
  bool columns_alone = true;
  // Nothing over the matrix waits for a row's reduction, and nothing is reduced to scalars: a block may have
  // a part of the columns, and what it reduces of a row is put together with the others' parts later.
  bool row_parts = true;
};
RowPanelNeeds NeedsOfRowPanel(const FusionShape& shape);
// Returns the bytes of one column of what RowPanelParameters::keeps_results keeps.
int64_t KeptResultBytes(const FusionShape& shape);

// Appends every kernel that the device can run.
void ConfigureRowPanel(const FusionShape& shape, std::vector<FusionImplementation>* out, NearestMiss* miss);
// Returns one kernel with the parameters given, where blocks_per_multiprocessor is the most wanted and
// becomes what fits. `kept_bytes`: shared memory for rows that a cooperative kernel keeps. *out gets what its
// estimate was made from. Nothing when the kernel does not fit, of which *miss is told.
std::optional<FusionImplementation> MakeRowPanel(const FusionShape& shape, const RowPanelNeeds& needs,
                                                 const RowPanelParameters& given, int64_t kept_bytes,
                                                 KernelTraits* out, NearestMiss* miss);

// Bounds of registers are tried up to so many blocks on a multiprocessor.
inline constexpr int kMostResident = 4;

// Blocks that have rows of their own leave multiprocessors without work.
bool HasFewRows(const FusionShape& shape);
using AddRowPanel = std::function<void(RowPanelParameters)>;
// Appends, by `add`, tiles of some rows and a part of the columns, for blocks of so many threads: where only
// columns are reduced; the second does so for few rows, where row_parts permits.
void AddColumnTiles(const FusionShape& shape, const RowPanelNeeds& needs, int width, int threads,
                    const AddRowPanel& add);
void AddFewRowTiles(const FusionShape& shape, const RowPanelNeeds& needs, const AddRowPanel& add);
// Appends, by `add`, groups of as many lanes as a row needs: a power of two below 32. This is for plain
// loads, and where nothing is reduced over the rows.
void AddShortRows(const FusionShape& shape, const RowPanelNeeds& needs, const AddRowPanel& add);

// RowPanelParameters::ragged is to be this for rows of so many columns.
bool HasRaggedRows(const RowPanelParameters& parameters, int64_t columns);
// Returns the bytes of shared memory for one row of one matrix of each group of a block.
int64_t RowSlotBytes(const FusionShape& shape, const RowPanelParameters& parameters);
// Returns the load paths through shared memory that the device has, each with a number of stages.
std::vector<std::pair<LoadPath, int>> StagedPaths(const FusionShape& shape);
// Returns the numbers of rows that a group may do together: short rows, so that their reductions share
// barriers and latencies and more of them are under way at once.
std::vector<int> RowsPerStep(const FusionShape& shape, const RowPanelNeeds& needs);
// Does the same without stages, all in registers: returns those of kRowsInRegisters for which there is room.
// `entries_per_row`: entries of a lane.
inline constexpr int kRowsInRegisters[] = {4, 8, 16};
std::vector<int> RowsInRegisters(const FusionShape& shape, const RowPanelNeeds& needs, int entries_per_row);
// Returns the vector widths that the rows' alignment permits, widest first.
std::vector<int> RowVectorWidths(const FusionShape& shape);

// The loads of a kernel take so long where they do not keep memory busy: KernelTraits::latency_seconds. For
// single entries it is the same on two H200 and an H100, whose memory has 0.7 of the rate, and nearly so
// however many matrices there are. resident: blocks on a multiprocessor at once.
double RowLatencySeconds(const FusionShape& shape, const RowPanelNeeds& needs,
                         const RowPanelParameters& parameters, int resident, int64_t rows, int64_t columns);

}  // namespace fusion
