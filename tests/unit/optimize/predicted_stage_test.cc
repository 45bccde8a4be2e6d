#include "server/optimize/predicted_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

// So that a leading dimension stays as long as the rows, and what is square stays so.
TEST(TrialSizesTest, KeepOrderAndEquality) {
  EXPECT_THAT(TrialSizes({{"ld", 5120}, {"m", 4093}, {"n", 5001}}),
              ElementsAre(Pair("ld", 131), Pair("m", 61), Pair("n", 97)));
  EXPECT_THAT(TrialSizes({{"m", 4096}, {"n", 4096}}), ElementsAre(Pair("m", 61), Pair("n", 61)));
}

TEST(TrialSizesTest, SmallSizesStay) {
  EXPECT_THAT(TrialSizes({{"k", 0}, {"m", 3}, {"n", 5001}}),
              ElementsAre(Pair("k", 0), Pair("m", 3), Pair("n", 131)));
}

}  // namespace
}  // namespace fusion
