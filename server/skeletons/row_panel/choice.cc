// The parameters that are tried for kernels over rows.
#include <algorithm>
#include <utility>

#include "server/skeletons/row_panel/row_panel.h"

namespace fusion {
namespace {

// Rows from this length on may be held by a cluster: shorter ones fill a multiprocessor's memory with several
// rows anyhow.
constexpr int64_t kLeastClusterRowBytes = 64 << 10;

// Blocks of larger clusters, for rows that two cannot hold: up to what every device with clusters permits.
constexpr int kLargeClusters[] = {4, 8};

// Results that stay for later phases of their row should be found in the second-level cache of a processor.
bool KeepsResults(const FusionShape& shape) {
  constexpr int64_t kMostBytes = 256 << 10;
  const int64_t bytes = KeptResultBytes(shape) * shape.Size(shape.roles.columns);
  return bytes > 0 && bytes <= kMostBytes;
}

}  // namespace

bool HasRaggedRows(const RowPanelParameters& parameters, int64_t columns) {
  const int64_t chunk = int64_t{parameters.threads_per_row} * parameters.vector_width;
  return parameters.chunks > 1 && !parameters.column_tiles && parameters.load_path != LoadPath::kBulk &&
         columns < chunk * parameters.chunks && columns >= chunk * (parameters.chunks - 1);
}

// It is long because it lists the kinds of kernels that are tried, one after the other.
void ConfigureRowPanel(const FusionShape& shape, std::vector<FusionImplementation>* out, NearestMiss* miss) {
  const RowPanelNeeds needs = NeedsOfRowPanel(shape);
  const int64_t columns = std::max<int64_t>(1, shape.Size(shape.roles.columns));
  const int l2_percent = L2Percent(shape, false);
  const AddRowPanel add = [&](RowPanelParameters parameters) {
    KernelTraits traits;
    parameters.ragged = HasRaggedRows(parameters, columns);
    if (auto made = MakeRowPanel(shape, needs, parameters, 0, &traits, miss))
      out->push_back(*std::move(made));
    // Not rows that are read again in each phase, for which L2 is there.
    if (l2_percent == 0 || parameters.stages > 0 || parameters.vector_width * shape.entry_bytes != 16 ||
        needs.matrices == 0 || (parameters.chunks == 0 && needs.held_inputs > 0))
      return;
    parameters.l2_percent = l2_percent;
    if (auto made = MakeRowPanel(shape, needs, parameters, 0, &traits, miss))
      out->push_back(*std::move(made));
  };
  if (!shape.simt()) {
    for (int threads : {1024, 256})
      add({.threads = threads, .threads_per_row = threads, .keeps_results = KeepsResults(shape)});
    return;
  }
  constexpr int kTileChunks = 4;
  const bool has_columns = needs.column_operands > 0;
  // A row in registers or shared memory of `per_row` lanes, those of a warp, a block or a cluster.
  const auto add_held = [&](int threads, int width, int per_row) {
    const int64_t chunks = (columns + int64_t{per_row} * width - 1) / (int64_t{per_row} * width);
    if (chunks > 32) return;
    if (per_row > 128 && int64_t{per_row} * width >= 2 * columns) return;  // mostly idle lanes
    const RowPanelParameters rows = {.threads = threads,
                                     .vector_width = width,
                                     .chunks = static_cast<int>(chunks),
                                     .threads_per_row = per_row,
                                     .cluster_blocks = std::max(1, per_row / threads),
                                     .blocks_per_multiprocessor = kAllThatFit};
    for (bool hold : {false, true}) {
      if (hold && !has_columns) continue;
      RowPanelParameters held = rows;
      held.hold_columns = hold;
      add(held);
      if (needs.matrices == 0) continue;
      RowPanelParameters several = held;
      for (int together : RowsInRegisters(shape, needs, rows.chunks * width)) {
        several.rows_per_step = together;
        if (hold == has_columns) add(several);
      }
      for (const auto& [path, stages] : StagedPaths(shape)) {
        several.load_path = path;
        several.stages = stages;
        for (int together : RowsPerStep(shape, needs)) {
          several.rows_per_step = together;
          add(several);
        }
      }
    }
    // Without results that gather over the rows, a block can end with its row.
    if (shape.grid_reductions > 0) return;
    RowPanelParameters one_shot = rows;
    one_shot.blocks_per_multiprocessor = 0;
    for (int resident = 1; resident <= (needs.held_inputs > 0 ? kMostResident : 1); ++resident) {
      one_shot.resident_blocks = resident;
      add(one_shot);
    }
  };
  for (int width : RowVectorWidths(shape)) {
    for (int threads : {256, 512, 1024, 128}) {
      // Two blocks a cluster: those that share a pair of multiprocessors. A persistent grid of larger ones
      // may not fit all at once, which doubles its time.
      const bool clusters =
          shape.features().clusters && threads >= 256 && columns * shape.entry_bytes >= kLeastClusterRowBytes;
      for (int per_row : {threads, 32, 2 * threads}) {
        if (per_row > threads && !clusters) continue;
        add_held(threads, width, per_row);
      }
      // In a run-time loop, read again in each phase.
      RowPanelParameters again = {.threads = threads,
                                  .vector_width = width,
                                  .threads_per_row = threads,
                                  .blocks_per_multiprocessor = kAllThatFit};
      add(again);
      again.blocks_per_multiprocessor = 0;
      if (shape.grid_reductions == 0) add(again);
      // One block each: the partial results of more would be larger than the matrix, where that has few rows.
      if (shape.grid_reductions > 0 && needs.columns_alone &&
          columns > int64_t{kTileChunks} * threads * width)
        add({.threads = threads,
             .vector_width = width,
             .chunks = kTileChunks,
             .threads_per_row = threads,
             .column_tiles = true});
      AddColumnTiles(shape, needs, width, threads, add);
    }
  }
  // Clusters of more blocks are tried only for what fewer cannot hold: where a persistent grid of them ends,
  // multiprocessors are left over (GridMultiprocessors).
  const auto held_by_fewer = [&](int blocks) {
    return std::any_of(out->begin(), out->end(), [blocks](const FusionImplementation& implementation) {
      const auto& made = implementation.As<RowPanelParameters>();
      return made.chunks > 0 && !made.column_tiles && made.cluster_blocks < blocks;
    });
  };
  if (shape.features().clusters)
    for (int cluster : kLargeClusters)
      for (int width : RowVectorWidths(shape))
        for (int threads : {256, 512, 1024})
          if (!held_by_fewer(cluster)) add_held(threads, width, cluster * threads);
  if (HasFewRows(shape)) AddFewRowTiles(shape, needs, add);
  AddShortRows(shape, needs, add);
}

std::vector<std::pair<LoadPath, int>> StagedPaths(const FusionShape& shape) {
  const DeviceFeatures& features = shape.features();
  std::vector<std::pair<LoadPath, int>> paths;
  for (int stages : {2, 3, 4}) {
    if (features.asynchronous_copies) paths.emplace_back(LoadPath::kStaged, stages);
    if (features.bulk_copies) paths.emplace_back(LoadPath::kBulk, stages);
  }
  return paths;
}

std::vector<int> RowsPerStep(const FusionShape& shape, const RowPanelNeeds& needs) {
  std::vector<int> choices = {1};
  const int64_t row_bytes = shape.Size(shape.roles.columns) * shape.entry_bytes;
  for (int together : {2, 4, 8})
    if (together * row_bytes <= 65536 && needs.matrices > 0) choices.push_back(together);
  return choices;
}

std::vector<int> RowsInRegisters(const FusionShape& shape, const RowPanelNeeds& needs, int entries_per_row) {
  constexpr int kMostRegisters = 128;
  std::vector<int> choices;
  for (int together : kRowsInRegisters)
    if (needs.matrices > 0 &&
        together * entries_per_row * needs.matrices * shape.entry_bytes / 4 <= kMostRegisters)
      choices.push_back(together);
  return choices;
}

std::vector<int> RowVectorWidths(const FusionShape& shape) {
  const int vector = 16 / shape.entry_bytes;
  bool aligned = shape.Size(shape.roles.columns) % vector == 0;
  for (const auto* values : {&shape.loads, &shape.stores})
    for (ValueId value : *values)
      if (const auto& leading = shape.graph.value(value).leading_dimension)
        aligned &= shape.Size(*leading) % vector == 0;
  if (aligned) return {vector, 1};
  return {1};
}

}  // namespace fusion
