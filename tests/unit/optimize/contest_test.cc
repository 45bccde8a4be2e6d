// Which candidates of a job are timed, and when it searches again.
#include "server/optimize/contest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "server/target/device_description.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

class ContestTest : public ::testing::Test {
 protected:
  // Candidates in predicted order, each `ratio` times as slow as the one before it.
  std::vector<WaitingCandidate> Waiting(int count, double ratio, int first_position = 0,
                                        double first_seconds = 1e-5) {
    std::vector<WaitingCandidate> waiting;
    for (int i = 0; i < count; ++i) {
      waiting.push_back({.position = first_position + i, .seconds = first_seconds});
      first_seconds *= ratio;
    }
    predicted_.resize(first_position + count);
    while (set_.candidates_size() < first_position + count) set_.add_candidates();
    for (const WaitingCandidate& candidate : waiting) predicted_[candidate.position] = candidate.seconds;
    return waiting;
  }
  // One round, whose candidates take `factor` times as long as predicted; 0: all of them fail.
  int DoRound(Contest& contest, double factor) {
    const std::vector<int> round = contest.NextRound();
    for (int position : round) {
      EXPECT_TRUE(tried_.insert(position).second) << "a candidate is tried once";
      v1::Candidate& candidate = *set_.mutable_candidates(position)->mutable_description();
      candidate.set_outcome(factor > 0 ? v1::OK : v1::FAULT);
      candidate.set_steady(true);
      if (factor > 0) candidate.mutable_measured()->set_median(factor * predicted_[position]);
    }
    contest.EndRound(set_);
    return static_cast<int>(round.size());
  }

  const CostModel model_{DescribedDevice(v1::CUDA)};
  std::vector<double> predicted_;
  v1::CandidateSet set_;
  std::set<int> tried_;
};

TEST_F(ContestTest, EndsWhenNoCandidateThatIsLeftCanWin) {
  Contest contest({.most = 40}, Waiting(40, 1.5), 1, model_);
  while (DoRound(contest, 1) > 0) {
  }
  EXPECT_EQ(contest.timed(), static_cast<int>(tried_.size()));
  EXPECT_TRUE(tried_.contains(0));
  EXPECT_LT(tried_.size(), 20u);
  EXPECT_THAT(contest.NotTimed(40), HasSubstr("cannot be faster"));
  EXPECT_EQ(contest.PossibleGain(), 0);
}

TEST_F(ContestTest, TimesAllOnRequestAndSearchesOnce) {
  Contest contest({.most = 20, .most_searches = 4, .all = true}, Waiting(20, 1.5), 1, model_);
  while (DoRound(contest, 1) > 0) EXPECT_FALSE(contest.SearchesAgain());
  EXPECT_EQ(tried_.size(), 20u);
  EXPECT_EQ(contest.NotTimed(20), "");
}

TEST_F(ContestTest, SearchesAgainUntilItsCandidatesAreUsed) {
  Contest contest({.most = 12, .first = 4, .most_searches = 4}, Waiting(12, 1), 1, model_);
  const int first = DoRound(contest, 2);
  ASSERT_LT(first, 12);
  ASSERT_TRUE(contest.SearchesAgain());
  EXPECT_EQ(contest.searches(), 1);
  EXPECT_EQ(contest.left(), 12 - first);
  contest.Continue(Waiting(30, 1, 12), 1, model_);
  EXPECT_EQ(contest.searches(), 2);
  while (DoRound(contest, 1) > 0) {
  }
  EXPECT_EQ(tried_.size(), 12u);
  EXPECT_GE(*tried_.rbegin(), 12) << "those of the later search are tried";
  EXPECT_EQ(contest.left(), 0);
  EXPECT_FALSE(contest.SearchesAgain());
  EXPECT_THAT(contest.NotTimed(42), HasSubstr("30 candidates of 42 were not timed: --candidates permits 12"));
}

TEST_F(ContestTest, TimesSoManyWhateverTheBoundsSay) {
  Contest contest({.most = 30, .first = 4, .least = 14, .most_searches = 2}, Waiting(12, 1), 1, model_);
  // The first is much faster than predicted, so that the others cannot be faster.
  ASSERT_LT(DoRound(contest, 1e-3), 12);
  ASSERT_TRUE(contest.SearchesAgain());
  contest.Continue(Waiting(20, 1, 12), 1, model_);
  while (DoRound(contest, 1) > 0) EXPECT_FALSE(contest.SearchesAgain());
  EXPECT_EQ(tried_.size(), 14u);
}

TEST_F(ContestTest, SearchesAgainSoOften) {
  Contest contest({.most = 100, .most_searches = 2}, Waiting(20, 1), 1, model_);
  DoRound(contest, 1);
  ASSERT_TRUE(contest.SearchesAgain());
  contest.Continue(Waiting(20, 1, 20), 1, model_);
  DoRound(contest, 1);
  EXPECT_FALSE(contest.SearchesAgain());
}

TEST_F(ContestTest, WhatFailedTeachesNothing) {
  Contest contest({.most = 100, .most_searches = 4}, Waiting(20, 1), 1, model_);
  EXPECT_GT(DoRound(contest, 0), 0);
  EXPECT_EQ(contest.timed(), 0);
  EXPECT_FALSE(contest.SearchesAgain());
  EXPECT_GT(DoRound(contest, 1), 0) << "the others are tried all the same";
  EXPECT_TRUE(contest.SearchesAgain());
  contest.StopSearching();
  EXPECT_FALSE(contest.SearchesAgain());
  EXPECT_GT(DoRound(contest, 1), 0);
}

TEST_F(ContestTest, WhatWasMeasuredBeforeBoundsTheNextSearch) {
  Contest contest({.most = 100, .most_searches = 2}, Waiting(8, 1), 1, model_);
  DoRound(contest, 1);
  ASSERT_TRUE(contest.SearchesAgain());
  // All that it found is far slower than what there is.
  contest.Continue(Waiting(20, 1, 8, 1e-3), 1, model_);
  EXPECT_EQ(DoRound(contest, 1), 0);
}

}  // namespace
}  // namespace fusion
