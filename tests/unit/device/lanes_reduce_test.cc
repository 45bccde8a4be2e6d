// What the lanes of host kernels hold, combined in a tree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "library/device/fusion_device.h"

namespace {

TEST(LanesReduce, EveryLaneOnceAtEveryCount) {
  for (int count = 1; count <= 70; ++count) {
    std::vector<double> lanes(count), spaced(3 * count, std::nan(""));
    for (int i = 0; i < count; ++i) lanes[i] = spaced[3 * i] = (i + 1) * (i + 1);
    const double expected = count * (count + 1.0) * (2 * count + 1) / 6;
    EXPECT_EQ((fu_lanes_reduce<fu_sum<double>>(lanes.data(), count)), expected) << count;
    EXPECT_EQ((fu_lanes_reduce<fu_sum<double>, 3>(spaced.data(), count)), expected) << count;
  }
}

TEST(LanesReduce, OtherMonoids) {
  for (int count : {1, 2, 31, 32, 33, 256}) {
    for (int largest : {0, count / 2, count - 1}) {
      std::vector<float> values(count);
      for (int i = 0; i < count; ++i) values[i] = i == largest ? 1000 : float(i % 7);
      std::vector<float> lanes = values;
      EXPECT_EQ(fu_lanes_reduce<fu_maximum<float>>(lanes.data(), count), 1000);
      lanes = values;
      EXPECT_EQ(fu_lanes_reduce<fu_minimum<float>>(lanes.data(), count),
                *std::min_element(values.begin(), values.end()));
      std::vector<fu_arg_max<float>::Acc> indexed;
      for (int i = 0; i < count; ++i) indexed.push_back(fu_arg_max<float>::lift(values[i], i));
      EXPECT_EQ(fu_arg_max<float>::value(fu_lanes_reduce<fu_arg_max<float>>(indexed.data(), count)), largest);
      lanes = values;
      lanes[largest] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_TRUE(std::isnan(fu_lanes_reduce<fu_maximum<float>>(lanes.data(), count)));
    }
  }
}

}  // namespace
