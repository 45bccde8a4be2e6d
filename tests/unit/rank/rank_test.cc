#include "server/rank/rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using ::testing::ElementsAre;

v1::Candidate Ok(int predicted_rank, double low, double median, double high) {
  v1::Candidate candidate;
  candidate.set_outcome(v1::OK);
  candidate.set_predicted_rank(predicted_rank);
  candidate.mutable_measured()->set_low(low);
  candidate.mutable_measured()->set_median(median);
  candidate.mutable_measured()->set_high(high);
  return candidate;
}

v1::Candidate Bad(int predicted_rank, v1::Outcome outcome) {
  v1::Candidate candidate;
  candidate.set_outcome(outcome);
  candidate.set_predicted_rank(predicted_rank);
  return candidate;
}

std::vector<int> Order(const std::vector<v1::Candidate>& candidates) {
  std::vector<int> order;
  for (const v1::Candidate& candidate : candidates) order.push_back(candidate.predicted_rank());
  return order;
}

TEST(Rank, FastestFirstAndBadOnesLastInPredictedOrder) {
  std::vector<v1::Candidate> candidates = {Bad(5, v1::FAULT), Ok(4, 3.9, 4, 4.1), Bad(2, v1::COMPILE_ERROR),
                                           Ok(1, 1.9, 2, 2.1), Ok(3, 0.9, 1, 1.1)};
  RankCandidates(&candidates);
  EXPECT_THAT(Order(candidates), ElementsAre(3, 1, 4, 2, 5));
  for (size_t i = 0; i < candidates.size(); ++i) {
    EXPECT_EQ(candidates[i].rank(), static_cast<int>(i) + 1);
    EXPECT_FALSE(candidates[i].tie());
  }
}

TEST(Rank, CandidatesThatCannotBeToldApartStandInPredictedOrder) {
  // 7 is fastest by a hair; 2 overlaps it; 1 does not.
  std::vector<v1::Candidate> candidates = {Ok(1, 1.4, 1.5, 1.6), Ok(7, 0.98, 1.0, 1.05),
                                           Ok(2, 1.02, 1.03, 1.1)};
  RankCandidates(&candidates);
  EXPECT_THAT(Order(candidates), ElementsAre(2, 7, 1));
  EXPECT_TRUE(candidates[0].tie());
  EXPECT_TRUE(candidates[1].tie());
  EXPECT_FALSE(candidates[2].tie());
}

TEST(Rank, OverlapIsJudgedAgainstTheFastestAlone) {
  // The slow one has a wide interval that reaches the fastest; the middle one does not.
  std::vector<v1::Candidate> candidates = {Ok(1, 1.2, 1.3, 1.4), Ok(2, 0.9, 1.0, 1.1), Ok(3, 1.0, 2.0, 9.0)};
  RankCandidates(&candidates);
  EXPECT_THAT(Order(candidates), ElementsAre(2, 3, 1));
}

TEST(Rank, NothingAndOnlyBadOnes) {
  std::vector<v1::Candidate> none;
  RankCandidates(&none);
  EXPECT_TRUE(none.empty());
  std::vector<v1::Candidate> bad = {Bad(2, v1::TIMEOUT), Bad(1, v1::WRONG_RESULT)};
  RankCandidates(&bad);
  EXPECT_THAT(Order(bad), ElementsAre(1, 2));
}

TEST(Rank, FinalistsAreTheFastestOkOnes) {
  const std::vector<v1::Candidate> candidates = {Ok(1, 3, 3, 3), Bad(2, v1::FAULT), Ok(3, 1, 1, 1),
                                                 Ok(4, 2, 2, 2)};
  EXPECT_THAT(ChooseFinalists(candidates, 2), ElementsAre(2, 3));
  EXPECT_THAT(ChooseFinalists(candidates, 9), ElementsAre(2, 3, 0));
}

v1::Candidate Steady(int predicted_rank, double low, double median, double high) {
  v1::Candidate candidate = Ok(predicted_rank, low, median, high);
  candidate.set_steady(true);
  return candidate;
}

TEST(Rank, WideIntervalsMakeNoTieOfWhatIsClearlySlower) {
  // The first may take up to 3; even the fastest samples of the second are 20 % slower than its median.
  std::vector<v1::Candidate> candidates = {Ok(1, 1.2, 2, 3), Ok(2, 0.9, 1, 3), Ok(3, 1.04, 1.3, 1.5)};
  RankCandidates(&candidates);
  EXPECT_THAT(Order(candidates), ElementsAre(2, 3, 1));
  EXPECT_TRUE(candidates[1].tie());
  EXPECT_FALSE(candidates[2].tie());
}

TEST(Rank, AFinalistWhoseTimeIsNotSteadyCountsByItsFastestSamples) {
  const std::vector<v1::Candidate> candidates = {Steady(1, 1.9, 2, 2.1), Ok(2, 1, 9, 50),
                                                 Steady(3, 2.9, 3, 3.1), Ok(4, 8, 8.5, 9)};
  EXPECT_THAT(ChooseFinalists(candidates, 2), ElementsAre(1, 0));
}

TEST(Rank, TimesTellTheFastestWhereNoneThatIsNotSteadyHasSamplesAsShort) {
  EXPECT_TRUE(IsReliable({}));
  EXPECT_TRUE(IsReliable({Bad(1, v1::FAULT)}));
  EXPECT_TRUE(IsReliable({Steady(1, 1.9, 2, 2.1), Steady(2, 1, 1, 1), Bad(3, v1::FAULT)}));
  EXPECT_FALSE(IsReliable({Steady(1, 1.9, 2, 2.1), Ok(2, 1, 1, 1)})) << "the fastest is not steady";
  EXPECT_FALSE(IsReliable({Steady(1, 1.9, 2, 2.1), Ok(2, 1.8, 9, 50)})) << "it may be faster";
  EXPECT_TRUE(IsReliable({Steady(1, 1.9, 2, 2.1), Ok(2, 2.2, 9, 50)})) << "it cannot be the fastest";
}

}  // namespace
}  // namespace fusion
