// Parameters of kernels of any skeleton in one value, for tests that look through kernels of all of them.
#pragma once

#include <vector>

#include "server/skeletons/block_vector/block_vector.h"
#include "server/skeletons/cooperative/cooperative.h"
#include "server/skeletons/element/element.h"
#include "server/skeletons/narrow_columns/narrow_columns.h"
#include "server/skeletons/row_panel/row_panel.h"
#include "server/skeletons/scalar/scalar.h"
#include "server/skeletons/skeletons.h"
#include "server/skeletons/vector/vector.h"

namespace fusion::testing {

// Parameters that a skeleton does not have keep these values.
struct AnyParameters {
  int threads = 0, elements_per_block = 0, vector_width = 1, chunks = 0, threads_per_row = 0,
      cluster_blocks = 1, stages = 0, unroll = 1, blocks_per_multiprocessor = 1, resident_blocks = 1,
      rows_per_step = 1, tile_rows = 0, l2_percent = 0;
  bool hold_columns = false, ragged = false, column_tiles = false, reversed = false, atomic = false;
  LoadPath load_path = LoadPath::kDirect;
  std::vector<int> choices = {};
  std::vector<PlacedValue> placement = {};
  int64_t shared_entries = 0;
  LoopRoles roles = {};
  KeptRows kept = {};
};

inline AnyParameters ParametersOf(const FusionImplementation& kernel) {
  if (const auto* p = std::any_cast<ElementParameters>(&kernel.parameters))
    return {.threads = p->threads,
            .elements_per_block = p->elements_per_block,
            .blocks_per_multiprocessor = p->blocks_per_multiprocessor,
            .load_path = p->load_path,
            .choices = p->choices,
            .placement = p->placement,
            .shared_entries = p->shared_entries};
  if (const auto* p = std::any_cast<VectorParameters>(&kernel.parameters))
    return {.threads = p->threads,
            .vector_width = p->vector_width,
            .unroll = p->unroll,
            .blocks_per_multiprocessor = p->blocks_per_multiprocessor,
            .l2_percent = p->l2_percent,
            .atomic = p->atomic};
  if (const auto* p = std::any_cast<BlockVectorParameters>(&kernel.parameters))
    return {.threads = p->threads, .vector_width = p->vector_width, .chunks = p->chunks};
  if (const auto* p = std::any_cast<NarrowColumnsParameters>(&kernel.parameters))
    return {.threads = p->threads,
            .vector_width = p->vector_width,
            .unroll = p->unroll,
            .blocks_per_multiprocessor = p->blocks_per_multiprocessor,
            .roles = p->roles};
  if (const auto* p = std::any_cast<CooperativeParameters>(&kernel.parameters))
    return {.threads = p->threads,
            .stages = p->stages,
            .blocks_per_multiprocessor = p->blocks_per_multiprocessor,
            .rows_per_step = p->rows_per_step,
            .l2_percent = p->l2_percent,
            .atomic = p->atomic,
            .load_path = p->load_path};
  const auto& p = kernel.As<RowPanelParameters>();
  return {.threads = p.threads,
          .vector_width = p.vector_width,
          .chunks = p.chunks,
          .threads_per_row = p.threads_per_row,
          .cluster_blocks = p.cluster_blocks,
          .stages = p.stages,
          .blocks_per_multiprocessor = p.blocks_per_multiprocessor,
          .resident_blocks = p.resident_blocks,
          .rows_per_step = p.rows_per_step,
          .tile_rows = p.tile_rows,
          .l2_percent = p.l2_percent,
          .hold_columns = p.hold_columns,
          .ragged = p.ragged,
          .column_tiles = p.column_tiles,
          .reversed = p.reversed,
          .atomic = p.atomic,
          .load_path = p.load_path,
          .roles = p.roles,
          .kept = p.kept};
}

inline const std::vector<FusionImplementation>& SweepsOf(const FusionImplementation& kernel) {
  return kernel.skeleton->Sweeps(kernel);
}

// These set kernels of one skeleton apart.
struct StructureTraits {
  const Skeleton* skeleton = nullptr;
  LoadPath load_path = LoadPath::kDirect;
  bool one_shot = false;
  bool reads_again = false;  // rows in a run-time loop, from memory or the caches in each phase
  bool in_groups = false;    // a row by a part of a block's threads
  bool in_batches = false;   // rows of matrices, several at once into registers
  bool keeps_rows = false;
  bool in_both = false;  // these in registers and in shared memory
  bool in_clusters = false;
  int several_threads = 0;  // of elements: which of its ways, if all functions have several threads
  bool in_tiles = false;    // blocks with a part of the columns of some rows
  bool atomic = false;
  bool in_l2 = false;
  friend bool operator==(const StructureTraits&, const StructureTraits&) = default;
};

inline StructureTraits TraitsOf(const FusionImplementation& kernel) {
  const AnyParameters p = ParametersOf(kernel);
  StructureTraits traits{.skeleton = kernel.skeleton,
                         .load_path = p.load_path,
                         .one_shot = p.blocks_per_multiprocessor == 0,
                         .in_batches = p.stages == 0 && p.rows_per_step > 1,
                         .in_clusters = p.cluster_blocks > 1,
                         .in_tiles = p.tile_rows > 0,
                         .atomic = p.atomic,
                         .in_l2 = p.l2_percent > 0};
  if (kernel.skeleton == &RowPanelSkeleton()) {
    traits.reads_again = p.chunks == 0;
    traits.in_groups = p.threads_per_row < p.threads;
  }
  for (const FusionImplementation& sweep : SweepsOf(kernel)) {
    const KeptRows kept = ParametersOf(sweep).kept;
    traits.keeps_rows |= kept.any();
    traits.in_both |= kept.register_rows > 0 && kept.shared_rows > 0;
  }
  if (kernel.skeleton == &ElementSkeleton())
    traits.several_threads = kernel.skeleton->Structure(kernel).back();
  return traits;
}

}  // namespace fusion::testing
