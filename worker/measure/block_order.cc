#include "worker/measure/block_order.h"

#include <algorithm>
#include <numeric>

#include "library/verification/entry_operations.h"

namespace fusion {

const char* NameOf(BlockOrder order) {
  switch (order) {
    case BlockOrder::kForward:
      return "a run of its blocks forwards";
    case BlockOrder::kBackward:
      return "a run of its blocks backwards";
    case BlockOrder::kShuffled:
      return "a run of its blocks in shuffled order";
    case BlockOrder::kUsual:
      break;
  }
  return "a run";
}

std::vector<long long> OrderedBlocks(BlockOrder order, int64_t grid) {
  std::vector<long long> blocks(grid);
  std::iota(blocks.begin(), blocks.end(), 0);
  if (order == BlockOrder::kBackward) std::reverse(blocks.begin(), blocks.end());
  if (order == BlockOrder::kShuffled)
    for (int64_t left = grid; left > 1; --left)
      std::swap(blocks[left - 1], blocks[MixBits(left) % static_cast<uint64_t>(left)]);
  return blocks;
}

}  // namespace fusion
