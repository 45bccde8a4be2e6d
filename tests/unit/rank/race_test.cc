#include "server/rank/race.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Race, RoundsAreInPredictedOrderAndEndWhereNoneCanWin) {
  // exp(-2 * 0.1) = 0.82.
  Race race({3.0, 1.0, 1.1, 1.2, 1.3, 1.9}, {.deviation = 0.1, .round = 3});
  EXPECT_THAT(race.Next(), ElementsAre(1, 2, 3));
  for (int position : {1, 2, 3}) race.Ended(position, 1.05);
  // The median error is log(1.05 / 1.1), the deviation from it less than 0.1 * 1.4826: 1.3 may be 1.3 * 0.954
  // * 0.77 = 0.95.
  EXPECT_THAT(race.Next(), ElementsAre(4));
  race.Ended(4, 1.25);
  EXPECT_THAT(race.Next(), IsEmpty());
  EXPECT_EQ(race.timed(), 4);
  EXPECT_GT(race.LeastLeft(), 1.05);
  EXPECT_EQ(race.PossibleGain(), 0);
}

TEST(Race, SoManyAreTimedWhateverTheBoundsSay) {
  const std::vector<double> predicted = {1, 1.1, 5, 6, 7, 8};
  Race race(predicted, {.deviation = 0.05, .round = 2, .least = 3});
  EXPECT_THAT(race.Next(), ElementsAre(0, 1));
  for (int position : {0, 1}) race.Ended(position, predicted[position]);
  EXPECT_THAT(race.Next(), ElementsAre(2)) << "and no more, by the bounds";
  race.Ended(2, 5);
  EXPECT_THAT(race.Next(), IsEmpty());
}

TEST(Race, AnErrorInCommonDoesNotLetTheRestIn) {
  std::vector<double> predicted;
  for (int i = 0; i < 40; ++i) predicted.push_back(1 + 0.1 * i);
  // All twice as slow as predicted; without the error in common 2.0 would not be excluded.
  Race race(predicted, {.deviation = 0.05, .round = 8});
  for (int position : race.Next()) race.Ended(position, 2 * predicted[position]);
  EXPECT_THAT(race.Next(), IsEmpty());
}

TEST(Race, ErrorsOfThisGraphWidenTheBounds) {
  const std::vector<double> predicted = {1, 1, 1, 1, 2};
  Race even(predicted, {.deviation = 0.05, .round = 4}), odd(predicted, {.deviation = 0.05, .round = 4});
  for (int position : even.Next()) even.Ended(position, 1);
  for (int position : odd.Next()) odd.Ended(position, position % 2 ? 2.5 : 0.9);
  EXPECT_THAT(even.Next(), IsEmpty());
  EXPECT_THAT(odd.Next(), ElementsAre(4));
  EXPECT_GT(odd.Deviation(), even.Deviation());
}

TEST(Race, GoesOnFromWhatWasMeasuredBefore) {
  // exp(-2 * 0.1) = 0.82: 1.1 may be 0.9, 1.3 only 1.06.
  Race race({1.1, 1.3}, {.deviation = 0.1, .best_seconds = 1});
  EXPECT_THAT(race.Next(), ElementsAre(0));
  race.Ended(0, 1.2);
  EXPECT_THAT(race.Next(), IsEmpty());
  Race nothing(std::vector<double>{1.3}, {.deviation = 0.1, .best_seconds = 1});
  EXPECT_THAT(nothing.Next(), IsEmpty());
  EXPECT_EQ(nothing.PossibleGain(), 0);
}

TEST(Race, WhatIsLessSureComesEarlier) {
  // Bounds: 0.98, 1.1 * exp(-0.4) = 0.74, 1.2 * exp(-0.2) = 0.98.
  Race race({{.predicted_seconds = 1, .deviation = 0.01},
             {.predicted_seconds = 1.1, .deviation = 0.2},
             {.predicted_seconds = 1.2}},
            {.deviation = 0.1, .round = 1});
  EXPECT_THAT(race.Next(), ElementsAre(1));
  race.Ended(1, 1.1);
  EXPECT_THAT(race.Next(), ElementsAre(0));
  race.Ended(0, 0.95);
  EXPECT_THAT(race.Next(), IsEmpty()) << "the last may take 0.96 by the error in common";
}

TEST(Race, WorseErrorsMayChangeTheOrder) {
  std::vector<RaceCandidate> candidates(4, {.predicted_seconds = 0.98, .deviation = 0.02});
  candidates.push_back({.predicted_seconds = 1, .deviation = 0.01});
  candidates.push_back({.predicted_seconds = 1.2, .deviation = 0.1});
  Race race(candidates, {.deviation = 0.02, .round = 4, .best_seconds = 0.95});
  EXPECT_THAT(race.Next(), ElementsAre(0, 1, 2, 3)) << "the others may take 0.980 and 0.982";
  for (int position : {0, 1, 2, 3}) race.Ended(position, 0.98 * std::exp(position % 2 ? 0.03 : -0.03));
  // Errors are more than twice as large as was thought: they may take 0.96 and 0.77.
  EXPECT_THAT(race.Next(), ElementsAre(5));
}

TEST(Race, NoMoreAreTimedThanAsked) {
  Race race({1, 1, 1, 1, 1}, {.deviation = 0.1, .round = 2, .most = 3});
  EXPECT_THAT(race.Next(), ElementsAre(0, 1));
  for (int position : {0, 1}) race.Ended(position, 1);
  EXPECT_THAT(race.Next(), ElementsAre(2));
  race.Ended(2, 1);
  EXPECT_THAT(race.Next(), IsEmpty());
  EXPECT_GT(race.PossibleGain(), 0) << "others could be faster";
}

TEST(Race, TheLeastAreSpreadOverTheGroups) {
  // Three groups; six must be timed.
  std::vector<RaceCandidate> candidates;
  for (int group : {0, 0, 0, 0, 1, 1, 2})
    candidates.push_back({.predicted_seconds = 1.0 + candidates.size(), .group = group});
  Race race(candidates, {.deviation = 0.01, .round = 4, .least = 6});
  EXPECT_THAT(race.Next(), ElementsAre(0, 1, 4, 5));
  for (int position : {0, 1, 4, 5}) race.Ended(position, position + 1);
  EXPECT_THAT(race.Next(), ElementsAre(6, 2)) << "every group has had its share: by prediction again";
}

TEST(Race, FailedRoundsAreFollowedByOthers) {
  Race race({1, 2, 3}, {.deviation = 0.01, .round = 1});
  EXPECT_THAT(race.Next(), ElementsAre(0));
  race.Ended(0, 0);
  EXPECT_EQ(race.PossibleGain(), 1);
  EXPECT_THAT(race.Next(), ElementsAre(1));
  race.Ended(1, 0);
  EXPECT_THAT(race.Next(), ElementsAre(2));
  race.Ended(2, 5);
  EXPECT_THAT(race.Next(), IsEmpty());
  EXPECT_EQ(race.timed(), 1);
  EXPECT_EQ(race.PossibleGain(), 0);
}

TEST(Race, AllAreTimedOnRequestInOneRound) {
  Race race({5, 1, 100}, {.deviation = 0.01, .round = 1, .all = true});
  EXPECT_THAT(race.Next(), ElementsAre(1, 0, 2));
  EXPECT_THAT(race.Next(), IsEmpty());
}

TEST(Race, GainIsBoundedByTheFloorAndByCoversThatAreNoCandidates) {
  Race race({1, 1.02}, {.deviation = 0.25, .floor_seconds = 0.9, .unseen_seconds = 1.05});
  for (int position : race.Next()) race.Ended(position, 1);
  EXPECT_DOUBLE_EQ(race.LeastLeft(), 0.9);  // 1.05 * exp(-0.5) is below the floor
  EXPECT_NEAR(race.PossibleGain(), 0.1, 1e-12);
  Race complete({1, 1.02}, {.deviation = 0.25});
  for (int position : complete.Next()) complete.Ended(position, 1);
  EXPECT_EQ(complete.PossibleGain(), 0);
}

TEST(Race, TimesThatAreNotSteadyDoNotLetItEnd) {
  const std::vector<double> predicted = {1, 1, 1, 1, 1.1};
  Race busy(predicted, {.deviation = 0.1, .round = 4}), slow(predicted, {.deviation = 0.1, .round = 4});
  for (int position : busy.Next()) busy.Ended(position, position == 0 ? 1.0 : 30, position == 0);
  for (int position : slow.Next()) slow.Ended(position, position == 0 ? 1.0 : 30);
  EXPECT_THAT(busy.Next(), ElementsAre(4)) << "nothing says that predictions are off by a factor of thirty";
  EXPECT_GT(slow.LeastLeft(), 1.1) << "steady times say so";
  EXPECT_EQ(busy.timed(), 4);
}

TEST(Race, OfNoneThereIsNothingToDo) {
  Race race(std::vector<double>{}, {});
  EXPECT_THAT(race.Next(), IsEmpty());
  EXPECT_TRUE(std::isinf(race.LeastLeft()));
}

}  // namespace
}  // namespace fusion
