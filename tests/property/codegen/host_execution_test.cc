// The harness of this folder catches what it is for.
#include "tests/property/codegen/host_execution.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fusion::testing {
namespace {

TEST(HostExecution, RelativeErrorSeesNaNAndMissingEntries) {
  EXPECT_EQ(RelativeError({1, 2}, {1, 2}), 0);
  EXPECT_TRUE(std::isinf(RelativeError({1, std::nan("")}, {1, 2})));
  EXPECT_TRUE(std::isinf(RelativeError({1}, {1, 2})));
  EXPECT_EQ(RelativeError({1, std::nan("")}, {1, std::nan("")}), 0);
  EXPECT_NEAR(RelativeError({1, 2.02}, {1, 2}), 0.01, 1e-6);
}

}  // namespace
}  // namespace fusion::testing
