#include "worker/measure/free_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kMega = 1 << 20;

TEST(FreeBlocksTest, APieceIsGivenAgainForWhatAlmostFillsIt) {
  FreeBlocks blocks;
  blocks.Allocated(1000, 100 * kMega);
  EXPECT_EQ(blocks.Take(100 * kMega), std::nullopt);  // in use
  EXPECT_THAT(blocks.Free(1000, 1000 * kMega), IsEmpty());
  EXPECT_EQ(blocks.free_bytes(), 100 * kMega);
  EXPECT_EQ(blocks.Take(100 * kMega + 1), std::nullopt);
  EXPECT_EQ(blocks.Take(79 * kMega), std::nullopt);
  EXPECT_EQ(blocks.Take(80 * kMega), 1000u);
  EXPECT_EQ(blocks.free_bytes(), 0);
  EXPECT_EQ(blocks.Take(80 * kMega), std::nullopt);
  // It has all its bytes when it comes back.
  EXPECT_THAT(blocks.Free(1000, 1000 * kMega), IsEmpty());
  EXPECT_EQ(blocks.Take(100 * kMega), 1000u);
}

TEST(FreeBlocksTest, TheSmallestThatFitsIsTaken) {
  FreeBlocks blocks;
  blocks.Allocated(1, 12 * kMega);
  blocks.Allocated(2, 10 * kMega);
  blocks.Allocated(3, 11 * kMega);
  for (DeviceAddress block : {1, 2, 3}) blocks.Free(block, 100 * kMega);
  EXPECT_EQ(blocks.Take(10 * kMega), 2u);
  EXPECT_EQ(blocks.Take(10 * kMega), 3u);
  EXPECT_EQ(blocks.Take(10 * kMega), 1u);
}

TEST(FreeBlocksTest, TheOldestGoWhereThereIsTooMuch) {
  FreeBlocks blocks;
  for (DeviceAddress block : {1, 2, 3}) blocks.Allocated(block, 10 * kMega);
  EXPECT_THAT(blocks.Free(2, 20 * kMega), IsEmpty());
  EXPECT_THAT(blocks.Free(1, 20 * kMega), IsEmpty());
  EXPECT_THAT(blocks.Free(3, 20 * kMega), ElementsAre(2));
  EXPECT_THAT(blocks.TakeAll(), ElementsAre(1, 3));
  EXPECT_EQ(blocks.free_bytes(), 0);
  // What is larger than all that may be kept goes at once.
  blocks.Allocated(4, 30 * kMega);
  EXPECT_THAT(blocks.Free(4, 20 * kMega), ElementsAre(4));
}

TEST(FreeBlocksTest, ManySmallPiecesAreNotKept) {
  FreeBlocks blocks;
  size_t dropped = 0;
  for (DeviceAddress block = 1; block <= 100; ++block) {
    blocks.Allocated(block, 1);
    dropped += blocks.Free(block, kMega).size();
  }
  EXPECT_EQ(dropped, 100 - 32u);
}

TEST(FreeBlocksTest, WhatItDoesNotKnowGoesToTheDriver) {
  FreeBlocks blocks;
  EXPECT_THAT(blocks.Free(77, kMega), ElementsAre(77));
}

}  // namespace
}  // namespace fusion
