#include "server/optimize/loop_trial.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

TEST(SmallSizesTest, WhatTilesDivideStaysAndSoDoesTheOrder) {
  const IntegerValues sizes = {{"a", 4096}, {"b", 5001}, {"c", 4096}, {"d", 7}, {"e", 1000000}, {"f", 128}};
  const IntegerValues small = SmallSizes(sizes, 128);
  for (const auto& [name, size] : sizes) {
    EXPECT_EQ(small.at(name) % 128, size % 128) << name;
    EXPECT_LE(small.at(name), size) << name;
    for (const auto& [other, other_size] : sizes)
      EXPECT_EQ(small.at(name) < small.at(other), size < other_size) << name << " " << other;
  }
  EXPECT_EQ(SmallSizes({{"n", 100000}}, 128), (IntegerValues{{"n", 128 + 100000 % 128}}));
  EXPECT_EQ(SmallSizes({{"n", 100000}}, 1 << 20), (IntegerValues{{"n", 100000}}));
}

}  // namespace
}  // namespace fusion
