#include "server/skeletons/element/tiles.h"

#include <algorithm>
#include <cstdint>

namespace fusion {
namespace {

// The largest number of elements up to `most`, or else the smallest, with which each value in shared memory
// begins at a multiple of 16 bytes.
int AlignedTile(const FusionImplementation& implementation, int most, int entry_bytes) {
  const std::vector<PlacedValue>& placement = implementation.As<ElementParameters>().placement;
  const auto aligned = [&](int elements) {
    return std::all_of(placement.begin(), placement.end(), [&](const PlacedValue& placed) {
      return placed.storage != StorageClass::kShared || placed.size * elements * entry_bytes % 16 == 0;
    });
  };
  for (int elements = most; elements > 0; --elements)
    if (aligned(elements)) return elements;
  return 16 / entry_bytes;
}

// Where a thread computes each element. Where nothing else is possible and not even 64 elements fit into
// shared memory (mtrace of 32 x 32 f32 on sm_90: 56), blocks have fewer; the other threads only load and
// store.
std::vector<Tile> TilesByOneThread(const FusionShape& shape, const FusionImplementation& placed,
                                   bool one_choice) {
  std::vector<Tile> tiles = {{64, 64}, {128, 128}, {256, 256}};
  const auto fits = [&](int elements) {
    return placed.As<ElementParameters>().shared_entries * shape.entry_bytes * elements <=
           shape.model.device().shared_bytes_per_block();
  };
  if (!one_choice || fits(tiles.front().elements)) return tiles;
  tiles.clear();
  for (int most = 32; most >= 1; most /= 2) {
    const int elements = AlignedTile(placed, most, shape.entry_bytes);
    if (tiles.empty() || elements < tiles.back().elements) tiles.push_back({64, elements});
  }
  // All that fit; where none does, the smallest, which then says how much it lacks.
  const auto first =
      std::find_if(tiles.begin(), tiles.end() - 1, [&](const Tile& tile) { return fits(tile.elements); });
  tiles.erase(tiles.begin(), first);
  return tiles;
}

}  // namespace

std::vector<Tile> TilesOf(const FusionShape& shape, const FusionImplementation& placed,
                          const Granularities& of) {
  if (!shape.simt())
    return of.all_thread ? std::vector<Tile>{{32, 32}, {128, 128}, {512, 512}}
                         : std::vector<Tile>{{16, 16}, {64, 64}};
  if (of.all_thread) return TilesByOneThread(shape, placed, of.one_choice);
  // So many items for each of the threads.
  const auto items = [&](int threads, int each) -> Tile {
    return {threads, AlignedTile(placed, std::clamp(each * threads / of.items_per_element, 1, threads),
                                 shape.entry_bytes)};
  };
  if (ReadsInPlace(placed)) return {items(256, 1), items(128, 1)};
  std::vector<Tile> tiles = {{128, 16}, {128, 32}, {256, 32}, {256, 64}, {128, 128}};
  // Large elements: smaller tiles, so that several blocks of a multiprocessor load, compute and store at
  // different times.
  constexpr int64_t kLargeElementBytes = 1024;
  if (placed.As<ElementParameters>().shared_entries * shape.entry_bytes > kLargeElementBytes)
    tiles.insert(tiles.end(), {{128, 4}, {256, 4}, {128, 8}, {256, 8}});
  // Two items a thread of small blocks, of which a multiprocessor holds many: products of 32 x 32 matrices at
  // 1.06 times the floor, 1.09 with twice the threads (H200, kernels by hand).
  tiles.push_back(items(64, 2));
  if (of.any_thread) return tiles;
  // One, where lists are too short for two: of 16 x 16, 2.72 us with one and 2.83 with two (507,904 entries
  // on an H100, kernels by hand).
  const Tile one = items(64, 1);
  if (one.elements != tiles.back().elements) tiles.push_back(one);
  for (Tile& tile : tiles)
    tile.idle = tile.elements > 1 && tile.elements * of.items_per_element < tile.threads - tile.threads / 4;
  std::stable_partition(tiles.begin(), tiles.end(), [](const Tile& tile) { return !tile.idle; });
  return tiles;
}

}  // namespace fusion
