// Parameters of row panels whose blocks have tiles: some rows and a part of the columns.
#include "server/skeletons/row_panel/row_panel.h"

namespace fusion {
namespace {

// Threads of a multiprocessor that registers must permit.
constexpr int kTileThreads = 1024;

// A block of these threads, for each tile.
RowPanelParameters TileBlock(const RowPanelNeeds& needs, int width, int threads, int chunks) {
  return {.threads = threads,
          .vector_width = width,
          .chunks = chunks,
          .threads_per_row = threads,
          .hold_columns = needs.column_operands > 0,
          .blocks_per_multiprocessor = 0,
          .column_tiles = true};
}

}  // namespace

bool HasFewRows(const FusionShape& shape) {
  constexpr int kRowsPerMultiprocessor = 4;
  return shape.simt() && shape.Size(shape.roles.rows) <
                             int64_t{kRowsPerMultiprocessor} * shape.model.device().multiprocessors();
}

void AddColumnTiles(const FusionShape& shape, const RowPanelNeeds& needs, int width, int threads,
                    const AddRowPanel& add) {
  // One stores while another loads.
  if (shape.grid_reductions == 0 || !needs.columns_alone || needs.matrices == 0 || threads > 512) return;
  const int64_t columns = shape.Size(shape.roles.columns);
  for (int chunks : {1, 2}) {
    if (int64_t{chunks} * threads * width >= 2 * columns) continue;  // mostly idle lanes
    RowPanelParameters tile = TileBlock(needs, width, threads, chunks);
    for (int resident : {1, kTileThreads / threads}) {
      tile.resident_blocks = resident;
      for (int tile_rows : {32, 128}) {
        tile.tile_rows = tile_rows;
        for (int together : {1, 4}) {
          tile.rows_per_step = together;
          add(tile);
        }
      }
    }
  }
}

void AddFewRowTiles(const FusionShape& shape, const RowPanelNeeds& needs, const AddRowPanel& add) {
  if (!needs.row_parts || (shape.grid_reductions > 0 && needs.columns_alone)) return;
  const int64_t rows = shape.Size(shape.roles.rows), columns = shape.Size(shape.roles.columns);
  for (int width : RowVectorWidths(shape)) {
    for (int threads : {256, 128, 512}) {
      for (int chunks : {1, 2, 4}) {
        if (int64_t{chunks} * threads * width >= columns) continue;  // whole rows
        RowPanelParameters tile = TileBlock(needs, width, threads, chunks);
        for (int tile_rows : {4, 32, 128}) {
          if (tile_rows > 4 && tile_rows >= 2 * rows) continue;
          tile.tile_rows = tile_rows;
          for (int together : {1, 2, 4}) {
            if (together >= 2 * rows || (together > 1 && needs.matrices == 0)) continue;
            tile.rows_per_step = together;
            add(tile);
          }
        }
      }
    }
  }
}

}  // namespace fusion
