// The C++ wrapper: runs end however the function that is measured ends.
#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>

#include "client/tuner/fusion_tuner.hpp"
#include "tests/unit/tuner_library/tuner_fixture.h"

namespace fusion::testing {
namespace {

TEST_F(TunerTest, MeasureReportsTheRunAndGivesTheResult) {
  Create();
  const tuner::Section section(TileSection());
  EXPECT_EQ(section.Measure([](const tuner::Values& values) { return values.Integer(0); }), 50);
  int calls = 0;
  section.Measure([&](const tuner::Values&) {
    // A section may call itself.
    section.Measure([&](const tuner::Values&) { ++calls; });
  });
  EXPECT_EQ(calls, 1);
  ASSERT_EQ(fusion_tuner_flush(tuner_, 5), FUSION_TUNER_OK);
  EXPECT_EQ(server_.Runs(), 3u);
}

TEST_F(TunerTest, ARunThatIsLeftIsCancelled) {
  Create();
  const tuner::Section section(TileSection());
  EXPECT_THROW(section.Measure([](const tuner::Values&) { throw std::runtime_error("left"); }),
               std::runtime_error);
  {
    tuner::Run run = section.Begin();
    tuner::Run moved = std::move(run);
    EXPECT_FALSE(run.Stop().ok());
    EXPECT_TRUE(moved.Report(2).ok());
    EXPECT_EQ(moved.Fail().code(), FUSION_TUNER_FAILED_PRECONDITION);
    tuner::Run left = section.Begin();
    moved = std::move(left);
  }
  ASSERT_EQ(fusion_tuner_flush(tuner_, 5), FUSION_TUNER_OK);
  EXPECT_EQ(server_.Runs(), 1u);
  EXPECT_EQ(Counters().reported, 1u);
}

TEST_F(TunerTest, ErrorsOfTheWrapperSayWhatTheLibrarySaid) {
  Create();
  fusion_tuner_section* undeclared = nullptr;
  ASSERT_EQ(fusion_tuner_section_create(tuner_, "later", &undeclared), FUSION_TUNER_OK);
  try {
    tuner::Section(undeclared).Begin();
    ADD_FAILURE() << "an undeclared section has no runs";
  } catch (const tuner::Error& error) {
    EXPECT_EQ(error.code(), FUSION_TUNER_FAILED_PRECONDITION);
    EXPECT_STREQ(error.what(), fusion_tuner_message());
  }
}

}  // namespace
}  // namespace fusion::testing
