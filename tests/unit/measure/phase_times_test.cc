#include "worker/measure/phase_times.h"

#include <gtest/gtest.h>

#include <numeric>

namespace fusion {
namespace {

void Work() {
  for (const auto start = std::chrono::steady_clock::now();
       std::chrono::steady_clock::now() - start < std::chrono::milliseconds(5);) {
  }
}

TEST(PhaseTimesTest, TimeCountsUnderTheInnermostPhaseAndOnce) {
  const auto start = std::chrono::steady_clock::now();
  PhaseTimes times;
  {
    const InPhase reference(&times, v1::TIMING_REFERENCE);
    Work();
    {
      const InPhase load(&times, v1::TIMING_LOAD);
      Work();
    }
    Work();
  }
  times.Enter(v1::TIMING_OTHER);
  const double all = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_GE(times.seconds()[v1::TIMING_REFERENCE], 0.01);
  EXPECT_GE(times.seconds()[v1::TIMING_LOAD], 0.005);
  EXPECT_EQ(times.seconds()[v1::TIMING_COLD], 0);
  EXPECT_LE(std::accumulate(times.seconds().begin(), times.seconds().end(), 0.0), all);
}

TEST(PhaseTimesTest, SecondsMoveAndAreForgotten) {
  PhaseTimes times;
  times.Enter(v1::TIMING_COLD);
  Work();
  times.Move(v1::TIMING_COLD, v1::TIMING_VERIFY, 0.002);
  times.Enter(v1::TIMING_OTHER);
  EXPECT_GE(times.seconds()[v1::TIMING_COLD], 0.003);
  EXPECT_EQ(times.seconds()[v1::TIMING_VERIFY], 0.002);
  times.Reset();
  EXPECT_EQ(times.seconds()[v1::TIMING_COLD], 0);
  EXPECT_EQ(times.seconds()[v1::TIMING_VERIFY], 0);
  const InPhase none(nullptr, v1::TIMING_COLD);  // whoever wants no times gives none
}

}  // namespace
}  // namespace fusion
