// What exploring costs is limited at any moment, whatever the runs take.
#include "client/tuner/exploration_budget.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "tests/unit/tuner_library/tuner_fixture.h"

namespace fusion::testing {
namespace {

using tuning::ExplorationBudget;

TEST(ExplorationBudgetTest, OneRunAtATimeAndOnlyWhenPaid) {
  ExplorationBudget budget;
  EXPECT_FALSE(budget.TryBegin(1));
  budget.PayIn(0.03, 1);
  EXPECT_FALSE(budget.TryBegin(1)) << "less than the least that an explored run is expected to cost";
  budget.PayIn(0.03, 1);
  EXPECT_TRUE(budget.TryBegin(1));
  EXPECT_FALSE(budget.TryBegin(1)) << "one is under way";
  budget.Cancelled();
  EXPECT_TRUE(budget.TryBegin(1));
  budget.Ended(0.5);
  budget.PayIn(0.4, 1);
  EXPECT_FALSE(budget.TryBegin(1)) << "the last one took more than there was";
  budget.PayIn(0.2, 1);
  EXPECT_TRUE(budget.TryBegin(1));
}

TEST(ExplorationBudgetTest, WhatWasSavedForLongIsNotSpentAtAStretch) {
  ExplorationBudget budget;
  for (int i = 0; i < 1'000'000; ++i) budget.PayIn(1, 1);
  int explored = 0;
  while (budget.TryBegin(1)) {
    budget.Ended(1);
    ++explored;
  }
  EXPECT_LE(explored, 64);
  EXPECT_GE(explored, 32);
}

TEST(ExplorationBudgetTest, ThreadsTogetherKeepTheLimit) {
  ExplorationBudget budget;
  constexpr double kShare = 0.1;
  std::atomic<int64_t> runs{0}, explored{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) {
        const bool exploring = budget.TryBegin(1);
        // A run of the best takes 1, an explored one 3. Counted before it is paid for, so that the sums below
        // are never behind.
        runs += exploring ? 3 : 1;
        budget.PayIn(kShare * (exploring ? 3 : 1), 1);
        if (!exploring) continue;
        explored += 1;
        EXPECT_LE(2.0 * explored, kShare * runs + 2);
        budget.Ended(2);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(explored, 1000);
}

TEST(ExplorationBudgetTest, NoiseAloneNeitherSpendsTheBudgetNorHidesWhatIsSpent) {
  // Every run takes one to nine times what it would alone, and all configurations are alike but for `slower`.
  for (const double slower : {1.0, 1.5}) {
    ExplorationBudget budget;
    std::mt19937 random(3);
    std::uniform_real_distribution<double> noise(1, 9);
    constexpr double kShare = 0.02;
    double total = 0, truly = 0;
    int explored = 0;
    for (int run = 0; run < 200'000; ++run) {
      const bool exploring = run % 5 == 4 && budget.TryBegin(1);
      const double value = noise(random) * (exploring ? slower : 1);
      total += value;
      budget.PayIn(kShare * value, 1);
      if (!exploring) {
        budget.Ran(value);
        continue;
      }
      ++explored;
      truly += 5 * (slower - 1);
      budget.Ended(value - budget.Usual(1));
    }
    EXPECT_LE(truly, 1.1 * kShare * total) << slower;
    // Exploring that costs nothing is limited by the noise of single runs alone.
    EXPECT_GT(explored, slower == 1 ? 10'000 : 2000);
  }
}

TEST(ExplorationBudgetTest, WhatWasSpentEarlierIsMadeUpFor) {
  ExplorationBudget budget;
  budget.Owe(10);
  for (int run = 0; run < 500; ++run) {
    EXPECT_FALSE(budget.TryBegin(1)) << run;
    budget.PayIn(0.02, 1);
  }
  budget.PayIn(0.04, 1);
  EXPECT_TRUE(budget.TryBegin(1));
  budget.Cancelled();
  // So is what was tried before anything good was known.
  budget.Explored(1);
  EXPECT_FALSE(budget.TryBegin(1));
}

TEST(ExplorationBudgetTest, GreatestAndLeastNumbersAreNoTrouble) {
  for (const double value : {std::numeric_limits<double>::max(), std::numeric_limits<double>::denorm_min()}) {
    ExplorationBudget budget;
    for (int run = 0; run < 1000; ++run) {
      budget.PayIn(value, value);
      budget.Ran(value / std::numeric_limits<double>::denorm_min());
      if (budget.TryBegin(value)) budget.Ended(run % 2 ? value : -value);
    }
    EXPECT_TRUE(std::isfinite(budget.Usual(value)));
    budget.Owe(std::numeric_limits<double>::max());
    budget.Owe(std::numeric_limits<double>::max());
    EXPECT_FALSE(budget.TryBegin(value));
  }
}

// Simulated times: nobody waits, runs are reported.
class BudgetOfRunsTest : public TunerTest, public ::testing::WithParamInterface<double> {};

TEST_P(BudgetOfRunsTest, ExcessIsAtMostTheShareAndOneRun) {
  const double share = GetParam();
  constexpr double kBest = 0.25;
  std::mt19937 random(7);
  std::lognormal_distribution<double> factors(0.5, 1.0);
  uint64_t next_proposal = 0;
  auto with_proposals = [&] {
    v1::TuningChoice choice = ChoiceOf({10}, kBest, v1::BOUNDED, share);
    for (int i = 0; i < 10; ++i)
      AddProposal(choice, ++next_proposal, {static_cast<double>(11 + next_proposal % 50)});
    return choice;
  };
  server_.SetChoice([&](const v1::DeclareSection&) { return with_proposals(); });
  // As many again as were tried.
  server_.SetOnReport([&](const v1::TuningReport& report) {
    if (report.proposal() == 0) return;
    v1::TuneResponse response;
    *response.mutable_choice() = ChoiceOf({10}, kBest, v1::BOUNDED, share);
    response.mutable_choice()->set_section(report.section());
    AddProposal(*response.mutable_choice(), ++next_proposal, {static_cast<double>(11 + next_proposal % 50)});
    server_.SendLocked(response);
  });
  Create();
  fusion_tuner_section* section = TileSection();
  ASSERT_TRUE(WaitForBest(section, 10));
  double time = 0, excess = 0, overshoot = 0;
  int explored = 0;
  // However long its proposals take to come.
  for (int run = 0; run < 30'000 || (share > 0 && explored <= 10); ++run) {
    const bool proposal = fusion_tuner_next(section)->integer != 10;
    const double value = proposal ? kBest * factors(random) : kBest;
    ASSERT_EQ(fusion_tuner_report(section, value), FUSION_TUNER_OK);
    time += value;
    if (proposal) {
      ++explored;
      excess += value - kBest;
      overshoot = std::max(overshoot, value - kBest);
    }
    ASSERT_LE(excess, share * time + overshoot) << "run " << run;
  }
  if (share == 0) {
    EXPECT_EQ(explored, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Shares, BudgetOfRunsTest, ::testing::Values(0.0, 0.02, 0.1));

TEST_F(TunerTest, AProgramMaySetItsOwnShare) {
  server_.SetChoice([&](const v1::DeclareSection&) {
    v1::TuningChoice choice = ChoiceOf({10}, 1, v1::BOUNDED, 0.5);
    for (int i = 1; i <= 40; ++i) AddProposal(choice, i, {20});
    return choice;
  });
  // Never, then without limit.
  for (double share : {0.0, 1.0}) {
    Create(share);
    fusion_tuner_section* section = TileSection();
    ASSERT_TRUE(WaitForBest(section, 10));
    int explored = 0;
    for (int run = 0; run < 40; ++run) {
      explored += fusion_tuner_next(section)->integer == 20;
      fusion_tuner_report(section, 100);
    }
    EXPECT_EQ(explored, share == 0 ? 0 : 40);
    Destroy();
  }
}

}  // namespace
}  // namespace fusion::testing
