#include <algorithm>
#include <cmath>

#include "server/skeletons/row_panel/row_panel.h"

namespace fusion {
namespace {

// Entries that a multiprocessor loads in a second where rows that vectors do not divide go entry by entry.
// Like the others of this file fitted to kernels of 4093 x 5001 (f32) on an H100 (model_replay --dump of
// measured candidates).
// `guarded`: each load stands behind a guard of its own.
double SingleEntriesPerSecond(const RowPanelNeeds& needs, const RowPanelParameters& parameters, bool guarded,
                              bool cold) {
  const bool together = parameters.rows_per_step > 1, in_batches = together && parameters.stages == 0;
  if (parameters.load_path == LoadPath::kBulk) return together ? 3.5e9 : 6.6e9;
  // With guards in all chunks the compiler puts loads one behind the other.
  if (guarded) return in_batches ? 4.2e9 : parameters.blocks_per_multiprocessor == 0 ? 4.5e9 : 6.0e9;
  if (in_batches) return needs.stored_matrices > 0 ? 3.4e9 : 6.5e9;
  // Operands over the columns are loaded entry by entry too, for each row.
  const bool loads_operands = needs.column_operands > 0 && !parameters.hold_columns;
  if (parameters.stages > 0) {
    if (together && needs.stored_matrices > 0 && !parameters.hold_columns) {
      // The rows of a step are gone through again, entry by entry, before the next are asked for.
      const int threads = parameters.threads * std::max(1, parameters.blocks_per_multiprocessor);
      return 4.4e9 * std::min(1.0, threads / 640.0);
    }
    if (together) return parameters.stages > 3 ? 5.0e9 : 6.5e9;
    if (loads_operands) return 4.5e9;
    return cold && needs.stored_matrices == 0 ? 6.6e9 : 7.5e9;
  }
  // The only block of a multiprocessor asks for its next row when the reduction of this one is complete.
  if (cold && parameters.blocks_per_multiprocessor == 1 && needs.held_inputs > 0) return 4.8e9;
  return loads_operands ? 7.0e9 : 9.0e9;
}

}  // namespace

double RowLatencySeconds(const FusionShape& shape, const RowPanelNeeds& needs,
                         const RowPanelParameters& parameters, int resident, int64_t rows, int64_t columns) {
  const double multiprocessors = shape.model.device().multiprocessors();
  const int width = parameters.vector_width, threads = parameters.threads,
            groups = threads / parameters.threads_per_row;
  const bool one_shot = parameters.blocks_per_multiprocessor == 0;
  if (parameters.chunks > 0) {
    if (width * shape.entry_bytes >= 16) return 0;
    const int64_t lane_columns = int64_t{parameters.chunks} * parameters.threads_per_row * width;
    const bool fills = parameters.tile_rows > 0 ? columns % lane_columns == 0
                                                : !parameters.column_tiles && columns == lane_columns;
    const double entries_per_second = SingleEntriesPerSecond(
        needs, parameters, !HasRaggedRows(parameters, columns) && !fills, !shape.model.back_to_back());
    return double(rows) * columns / width / (entries_per_second * multiprocessors);
  }
  // A loop over the row waits in each step for the loads of that step.
  constexpr double kStep = 0.25e-6, kLoad = 0.1e-6, kStepAgain = 0.2e-6, kStore = 0.15e-6,
                   kReduction = 1.9e-6, kStart = 2.3e-6;
  const int phases = std::max(1, shape.roles.phase_count);
  const double steps = std::ceil(double(columns) / (parameters.threads_per_row * width));
  const double of_step =
      kStep + kLoad * needs.matrices + kStepAgain * (phases - 1) + kStore * needs.stored_matrices;
  const double of_row =
      steps * of_step + (kReduction * needs.row_reductions + (one_shot ? kStart : 0)) * threads / 1024;
  const double blocks_at_once =
      multiprocessors * (one_shot ? resident : std::min(resident, parameters.blocks_per_multiprocessor));
  return std::max(1.0, double(rows) / groups / blocks_at_once) * of_row;
}

}  // namespace fusion
