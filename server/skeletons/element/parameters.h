#pragma once

#include <cstdint>
#include <vector>

#include "server/graph/graph.h"
#include "server/skeletons/shared/load_path.h"

namespace fusion {

// A variable of a fusion lives in one of these.
enum class StorageClass {
  kRegisters,
  kShared,
  kDevice,  // not on chip; the functions that several threads compute read or write it in place
};
// The largest number that an archive may have for a storage class.
inline int64_t LastNumber(StorageClass) { return static_cast<int64_t>(StorageClass::kDevice); }

// One value lives in such a class. Offset and size are in entries of the shared array, for kShared.
struct PlacedValue {
  ValueId value;
  StorageClass storage = StorageClass::kRegisters;
  int64_t offset = 0;
  int64_t size = 0;  // entries from one element to the next

  template <typename Archive>
  void Fields(Archive& archive) {
    archive(value, storage, offset, size);
  }
};

// The parameters of kernels over lists of elements.
struct ElementParameters {
  int threads = 128;           // per block
  int elements_per_block = 0;  // of one tile
  // Persistent grid: blocks <= multiprocessors * this, each walks over many tiles. 0: one tile a block.
  int blocks_per_multiprocessor = 1;
  LoadPath load_path = LoadPath::kDirect;
  // For each of FusionImplementation::order: position in Overload::implementations (ELEMENT); else 0, a
  // thread for an element, or 1, a thread for an entry.
  std::vector<int> choices;
  std::vector<PlacedValue> placement;  // every value that the kernel touches
  int64_t shared_entries = 0;          // size of the shared array, in entries per element of the tile
  // These serve to measure routines, not users: a block loads and computes each tile so often, with the same
  // results. Loads are of other tiles first; the elements must be a multiple of the tile.
  int load_repeats = 1, compute_repeats = 1;

  template <typename Archive>
  void Fields(Archive& archive) {
    archive(threads, elements_per_block, blocks_per_multiprocessor, load_path, choices, placement,
            shared_entries, load_repeats, compute_repeats);
  }
};

}  // namespace fusion
