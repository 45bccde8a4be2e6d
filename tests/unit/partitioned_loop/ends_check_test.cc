#include "client/tuner/ends_check.h"

#include <gtest/gtest.h>

namespace fusion {
namespace {

constexpr size_t kHostAlone = 1, kDeviceAlone = 2;

// Runs of these times, with a disturbance of every fourth run; the number of runs until it was decided.
int Decide(EndsCheck& check, double found, double host, double device) {
  int runs = 0;
  while (!check.decided() && runs < 100) {
    const size_t kind = check.Next();
    const double seconds = kind == EndsCheck::kFound ? found : kind == kHostAlone ? host : device;
    check.Add(kind, ++runs % 4 == 0 ? 3 * seconds : seconds);
  }
  EXPECT_TRUE(check.decided());
  return runs;
}

TEST(EndsCheckTest, FasterEndsWin) {
  EndsCheck host({true, true}), device({true, true}), found({true, true});
  Decide(host, 1.0, 0.9, 1.1);
  EXPECT_EQ(host.winner(), kHostAlone);
  Decide(device, 1.0, 0.95, 0.9);
  EXPECT_EQ(device.winner(), kDeviceAlone);
  Decide(found, 1.0, 1.1, 1.01);
  EXPECT_EQ(found.winner(), EndsCheck::kFound);
}

TEST(EndsCheckTest, WhatIsAlmostAsFastChangesNothing) {
  EndsCheck check({true, true});
  Decide(check, 1.0, 0.995, 1.0);
  EXPECT_EQ(check.winner(), EndsCheck::kFound);
}

TEST(EndsCheckTest, EndsThatAreFarAwayCostTwoRuns) {
  EndsCheck check({true, true});
  EXPECT_LE(Decide(check, 1.0, 20, 30), 6);
  EXPECT_EQ(check.winner(), EndsCheck::kFound);
}

TEST(EndsCheckTest, WhatDisturbsSomeShortRunsDecidesNothing) {
  // The host alone takes all processors, and something else needs one of them for 12 ms.
  EndsCheck check({true, true});
  double elapsed = 0;
  int runs = 0;
  while (!check.decided() && runs++ < 2000) {
    const size_t kind = check.Next();
    double seconds = kind == kHostAlone ? 0.19e-3 : kind == kDeviceAlone ? 1.2e-3 : 0.24e-3;
    if (kind == kHostAlone && elapsed < 12e-3) seconds *= 2;
    elapsed += seconds;
    check.Add(kind, seconds);
  }
  EXPECT_TRUE(check.decided());
  EXPECT_EQ(check.winner(), kHostAlone);
  EXPECT_LT(elapsed, 0.2) << "the check itself costs little";
}

TEST(EndsCheckTest, TheEndThatWasFoundIsNotComparedWithItself) {
  EndsCheck check({false, true});
  for (int i = 0; i < 4; ++i) {
    EXPECT_NE(check.Next(), kHostAlone);
    check.Add(check.Next(), 1);
  }
  Decide(check, 1, 0.1, 1.1);
  EXPECT_EQ(check.winner(), EndsCheck::kFound);
}

TEST(EndsCheckTest, TheFastestOfManyRivalsWins) {
  EndsCheck check({true, true, false, true});
  const double seconds[] = {1.0, 1.2, 0.97, 0.1, 0.93};
  int runs = 0;
  while (!check.decided() && runs < 100) {
    const size_t next = check.Next();
    EXPECT_NE(next, 3u) << "it takes no part";
    check.Add(next, seconds[next]);
    ++runs;
  }
  EXPECT_EQ(check.winner(), 4u);
  EXPECT_LE(runs, 3 * 9 + 4) << "one was far away";
}

}  // namespace
}  // namespace fusion
