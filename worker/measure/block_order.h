// Blocks of kernels that are independent by nothing but a pragma run in several orders when they are
// verified. On a host such a kernel has a variable NAME_order beside it: null, or the numbers of its blocks
// in the order in which they shall run.
#pragma once

#include <cstdint>
#include <vector>

namespace fusion {

enum class BlockOrder : uint8_t { kUsual, kForward, kBackward, kShuffled };  // kUsual: as the kernel has it

// "a run of its blocks backwards": for people.
const char* NameOf(BlockOrder order);

// Returns the numbers of `grid` blocks in an order that is not the usual one. Shuffled ones are the same each
// time.
std::vector<long long> OrderedBlocks(BlockOrder order, int64_t grid);

}  // namespace fusion
