#pragma once

#include <vector>

#include "server/graph/graph.h"
#include "server/skeletons/shared/load_path.h"
#include "server/skeletons/shared/loop_roles.h"

namespace fusion {

// Rows of matrices that stay on the multiprocessor from one sweep of a cooperative kernel to the next.
struct KeptRows {
  std::vector<ValueId> values;
  int shared_rows = 0;    // the first rows of each group
  int register_rows = 0;  // the rows of the last step that a sweep does
  bool filled = false;    // an earlier sweep filled them

  bool any() const { return shared_rows > 0 || register_rows > 0; }
  template <typename Archive>
  void Fields(Archive& archive) {
    archive(values, shared_rows, register_rows, filled);
  }
};

// The parameters of kernels over rows of matrices.
struct RowPanelParameters {
  int threads = 128;     // per block
  int vector_width = 1;  // consecutive entries per thread and load
  // columns / (threads_per_row * vector_width) held in registers; 0: the row is walked in a run-time loop.
  int chunks = 0;
  // The lanes of a row: 32 (a warp), fewer for short rows (a power of two), `threads` (the block) or those of
  // the cluster.
  int threads_per_row = 0;
  // With chunks: blocks that hold one row together, each a part of it (sm_90).
  int cluster_blocks = 1;
  int stages = 0;             // rows in flight in shared memory (asynchronous copies); 0: plain loads
  bool hold_columns = false;  // with chunks: operands over the columns stay in registers
  // With chunks, not kBulk: at the sizes of the plan rows end within the last chunk, so that the code without
  // guards is for rows that fill all chunks but that one.
  bool ragged = false;
  // Persistent grid: blocks <= multiprocessors * this, each walks over many rows. 0: as many blocks as there
  // is work.
  int blocks_per_multiprocessor = 1;
  int resident_blocks = 1;  // one tile a block: blocks of a multiprocessor that registers must permit
  LoadPath load_path = LoadPath::kDirect;
  // With chunks: rows that a group does together; without stages all of them in registers.
  int rows_per_step = 1;
  // With chunks: rows are wider than chunks * threads * vector_width, and all of them are walked over once
  // for each such part of their columns. For column reductions alone, but with tile_rows.
  bool column_tiles = false;
  int tile_rows = 0;  // with column_tiles: a block does so many rows of one part of the columns; 0: all parts
  bool reversed = false;  // from the last row to the first, what an earlier sweep left in the cache first
  // Sums over the grid are added up in device memory, in any order: no partial results to combine, but other
  // last bits on every run. Cooperative kernels have this: their blocks can wait until the sums are zero.
  bool atomic = false;
  // Plain loads of 16 bytes ask the L2 cache to keep that share of the inputs (L2Use) for the next run.
  int l2_percent = 0;
  // Without chunks: what DearResults lists stays in shared memory for the later phases of its row, which else
  // compute it again.
  bool keeps_results = false;
  LoopRoles roles;  // for the nodes of FusionImplementation::order
  KeptRows kept;

  template <typename Archive>
  void Fields(Archive& archive) {
    archive(threads, vector_width, chunks, threads_per_row, cluster_blocks, stages, hold_columns, ragged,
            blocks_per_multiprocessor, resident_blocks, load_path, rows_per_step, column_tiles, tile_rows,
            reversed, atomic, l2_percent, keeps_results, roles, kept);
  }
};

}  // namespace fusion
