// What a program sees of the library while a server says what it is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <set>
#include <thread>

#include "tests/unit/tuner_library/tuner_fixture.h"

namespace fusion::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(TunerTest, AnswersWithDefaultsWhereNoServerIs) {
  server_.SetDown(true);
  Create();
  fusion_tuner_section* section = TileSection();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(fusion_tuner_next(section)->integer, 50);
    ASSERT_EQ(fusion_tuner_start(section), FUSION_TUNER_OK);
    ASSERT_EQ(fusion_tuner_stop(section), FUSION_TUNER_OK);
  }
  EXPECT_EQ(fusion_tuner_flush(tuner_, 0.01), FUSION_TUNER_DEADLINE_EXCEEDED);
  EXPECT_THAT(fusion_tuner_message(), HasSubstr("the simulated server"));
  EXPECT_EQ(Counters().reported, 3u);
  EXPECT_EQ(Counters().acknowledged, 0u);
  EXPECT_EQ(Counters().connected, 0);
  ASSERT_TRUE(server_.WaitFor([&] { return !Notices().empty(); }));
  ASSERT_EQ(Notices().size(), 1u);
  EXPECT_THAT(Notices()[0],
              HasSubstr("cannot be reached (connection refused); this program goes on with its defaults"));
}

TEST_F(TunerTest, UsesTheChoiceAndReportsItsRunsTogether) {
  server_.SetChoice([](const v1::DeclareSection&) { return ChoiceOf({7}, 1.5, v1::CONVERGED); });
  Create();
  fusion_tuner_section* section = TileSection();
  ASSERT_TRUE(WaitForBest(section, 7));
  EXPECT_EQ(fusion_tuner_converged(section), 1);
  for (double value : {1.0, 2.0, 4.0, 9.0}) {
    EXPECT_EQ(fusion_tuner_next(section)->integer, 7);
    ASSERT_EQ(fusion_tuner_report(section, value), FUSION_TUNER_OK);
  }
  ASSERT_EQ(fusion_tuner_flush(tuner_, 5), FUSION_TUNER_OK) << fusion_tuner_message();
  // However the runs were divided among batches, they join to these.
  double sum = 0, squares = 0, minimum = 1e9;
  uint64_t count = 0;
  for (const v1::TuningReport& report : server_.Reports()) {
    EXPECT_EQ(report.proposal(), 0u);
    EXPECT_EQ(report.configuration().values(0), 7);
    count += report.count();
    sum += report.mean() * static_cast<double>(report.count());
    squares +=
        report.squared_deviations() + report.mean() * report.mean() * static_cast<double>(report.count());
    minimum = std::min(minimum, report.minimum());
  }
  EXPECT_EQ(count, 4u);
  EXPECT_DOUBLE_EQ(sum, 16);
  EXPECT_NEAR(squares, 1 + 4 + 16 + 81, 1e-9);
  EXPECT_EQ(minimum, 1);
  EXPECT_EQ(Counters().acknowledged, 4u);
  EXPECT_EQ(Counters().explored, 0u);
}

TEST_F(TunerTest, EveryProposalIsTriedOnceByOneThread) {
  constexpr int kProposals = 60, kThreads = 4;
  server_.SetChoice([](const v1::DeclareSection&) {
    v1::TuningChoice choice = ChoiceOf({0}, 0, v1::EXPLORING);
    for (int i = 1; i <= kProposals; ++i) AddProposal(choice, 100 + i, {static_cast<double>(i)});
    return choice;
  });
  Create();
  fusion_tuner_section* section = TileSection();
  ASSERT_TRUE(WaitForBest(section, 0));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const int64_t tile = fusion_tuner_next(section)->integer;
        EXPECT_EQ(fusion_tuner_next(section)->integer, tile) << "the same until the run has ended";
        EXPECT_EQ(fusion_tuner_start(section), FUSION_TUNER_OK);
        EXPECT_EQ(fusion_tuner_report(section, static_cast<double>(tile) + 1), FUSION_TUNER_OK);
      }
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(fusion_tuner_flush(tuner_, 5), FUSION_TUNER_OK) << fusion_tuner_message();
  std::multiset<uint64_t> tried;
  uint64_t runs = 0;
  for (const v1::TuningReport& report : server_.Reports()) {
    runs += report.count();
    if (report.proposal() == 0) continue;
    tried.insert(report.proposal());
    EXPECT_EQ(report.count(), 1u);
    EXPECT_EQ(report.configuration().values(0), static_cast<double>(report.proposal() - 100));
    EXPECT_EQ(report.mean(), static_cast<double>(report.proposal() - 100) + 1);
  }
  EXPECT_EQ(tried.size(), static_cast<size_t>(kProposals));
  EXPECT_EQ(std::set<uint64_t>(tried.begin(), tried.end()).size(), static_cast<size_t>(kProposals));
  EXPECT_EQ(runs, 200u * kThreads);
  EXPECT_EQ(Counters().explored, static_cast<uint64_t>(kProposals));
  EXPECT_EQ(Counters().reported, 200u * kThreads);
  EXPECT_EQ(Counters().dropped, 0u);
}

TEST_F(TunerTest, AProposalThatIsCancelledIsTriedByAnotherRun) {
  server_.SetChoice([](const v1::DeclareSection&) {
    v1::TuningChoice choice = ChoiceOf({0}, 0, v1::EXPLORING);
    AddProposal(choice, 9, {33});
    return choice;
  });
  Create();
  fusion_tuner_section* section = TileSection();
  ASSERT_TRUE(WaitForBest(section, 0));
  ASSERT_TRUE(server_.WaitFor([&] {
    const bool proposed = fusion_tuner_next(section)->integer == 33;
    fusion_tuner_cancel(section);
    return proposed;
  }));
  // And one that a thread took with it.
  std::thread([&] {
    ASSERT_TRUE(server_.WaitFor([&] {
      if (fusion_tuner_next(section)->integer == 33) return true;
      fusion_tuner_cancel(section);
      return false;
    }));
  }).join();
  ASSERT_TRUE(server_.WaitFor([&] {
    const bool proposed = fusion_tuner_next(section)->integer == 33;
    fusion_tuner_report(section, 1);
    return proposed;
  }));
  ASSERT_EQ(fusion_tuner_flush(tuner_, 5), FUSION_TUNER_OK);
  EXPECT_EQ(Counters().explored, 1u);
}

TEST_F(TunerTest, ARunThatCannotBeDoneIsAFailure) {
  Create();
  fusion_tuner_section* section = TileSection();
  fusion_tuner_next(section);
  EXPECT_EQ(fusion_tuner_fail(section), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_flush(tuner_, 5), FUSION_TUNER_OK);
  ASSERT_EQ(server_.Reports().size(), 1u);
  EXPECT_EQ(server_.Reports()[0].failures(), 1u);
  EXPECT_EQ(server_.Reports()[0].count(), 0u);
}

TEST_F(TunerTest, ProposalsOfBeforeAResetAreNotTried) {
  Create();
  fusion_tuner_section* section = TileSection();
  v1::TuneResponse response;
  v1::TuningChoice& choice = *response.mutable_choice();
  choice = ChoiceOf({1}, 0, v1::EXPLORING);
  choice.set_section(1);
  for (int i = 1; i <= 10; ++i) AddProposal(choice, i, {10});
  ASSERT_TRUE(server_.WaitFor([&] { return Counters().connected != 0; }));
  server_.Send(response);
  ASSERT_TRUE(WaitForBest(section, 1));
  choice = ChoiceOf({2}, 0, v1::EXPLORING, 0.02, /*generation=*/2);
  choice.set_section(1);
  AddProposal(choice, 11, {20});
  server_.Send(response);
  ASSERT_TRUE(WaitForBest(section, 2));
  std::set<int64_t> tiles;
  ASSERT_TRUE(server_.WaitFor([&] {
    tiles.insert(fusion_tuner_next(section)->integer);
    fusion_tuner_report(section, 1);
    return tiles.contains(20);
  }));
  EXPECT_FALSE(tiles.contains(10));
}

TEST_F(TunerTest, ReportsOfABrokenConnectionArriveOnce) {
  Create();
  fusion_tuner_section* section = TileSection();
  fusion_tuner_next(section);
  ASSERT_TRUE(server_.WaitFor([&] { return Counters().connected != 0; }));
  // The server stores a batch, and is gone before it can say so.
  server_.SetAcknowledging(false);
  fusion_tuner_report(section, 1);
  ASSERT_TRUE(server_.WaitFor([&] { return server_.Runs() == 1; }));
  EXPECT_EQ(Counters().acknowledged, 0u);
  server_.SetDown(true);
  ASSERT_TRUE(server_.WaitFor([&] { return Counters().connected == 0; }));
  for (int i = 0; i < 10; ++i) fusion_tuner_report(section, 2);
  server_.SetAcknowledging(true);
  server_.SetDown(false);
  ASSERT_EQ(fusion_tuner_flush(tuner_, 5), FUSION_TUNER_OK) << fusion_tuner_message();
  EXPECT_EQ(server_.Runs(), 11u);
  EXPECT_EQ(Counters().acknowledged, 11u);
  EXPECT_EQ(Counters().reconnections, 1u);
  ASSERT_EQ(Notices().size(), 2u);
  EXPECT_THAT(Notices()[0], HasSubstr("is gone (killed); this program goes on with its last choice"));
  EXPECT_THAT(Notices()[1], HasSubstr("is back"));
}

TEST_F(TunerTest, ReportsWhileNoServerIsThereAreJoinedNotDropped) {
  server_.SetDown(true);
  Create();
  fusion_tuner_section* section = TileSection();
  for (int i = 0; i < 50'000; ++i) fusion_tuner_report(section, 1);
  server_.SetDown(false);
  ASSERT_EQ(fusion_tuner_flush(tuner_, 20), FUSION_TUNER_OK) << fusion_tuner_message();
  EXPECT_EQ(server_.Runs() + Counters().dropped, 50'000u);
  EXPECT_LE(server_.Reports().size(), 2u);
}

TEST_F(TunerTest, WhatARefusingServerSaysIsTheSectionsStatus) {
  server_.SetDeclared([](const v1::DeclareSection&) {
    v1::Declared declared;
    declared.mutable_status()->set_code(6);
    declared.mutable_status()->set_message("declared differently by another program");
    return declared;
  });
  Create();
  fusion_tuner_section* section = TileSection();
  ASSERT_TRUE(
      server_.WaitFor([&] { return fusion_tuner_section_status(section) == FUSION_TUNER_ALREADY_EXISTS; }));
  EXPECT_THAT(fusion_tuner_message(), HasSubstr("section loop: declared differently by another program"));
  EXPECT_EQ(fusion_tuner_next(section)->integer, 50);
  EXPECT_EQ(fusion_tuner_report(section, 1), FUSION_TUNER_OK);
  EXPECT_TRUE(server_.WaitFor([&] { return Counters().dropped == 1; }));
  EXPECT_EQ(fusion_tuner_flush(tuner_, 5), FUSION_TUNER_OK);
  EXPECT_EQ(server_.Runs(), 0u);
}

TEST_F(TunerTest, RefusedReportsAreSaidOnceAndCounted) {
  server_.SetOnReport([&](const v1::TuningReport& report) {
    v1::TuneResponse response;
    response.mutable_refused()->set_section(report.section());
    response.mutable_refused()->set_runs(report.count());
    response.mutable_refused()->mutable_status()->set_code(3);
    response.mutable_refused()->mutable_status()->set_message("it cannot be true");
    server_.SendLocked(response);
  });
  Create();
  fusion_tuner_section* section = TileSection();
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 10; ++i) EXPECT_EQ(fusion_tuner_report(section, 1), FUSION_TUNER_OK);
    ASSERT_EQ(fusion_tuner_flush(tuner_, 20), FUSION_TUNER_OK) << fusion_tuner_message();
  }
  EXPECT_EQ(Counters().reported, 20u);
  EXPECT_EQ(Counters().refused, 20u);
  EXPECT_EQ(Counters().acknowledged, 0u);
  EXPECT_EQ(Counters().dropped, 0u);
  EXPECT_THAT(Notices(), ::testing::ElementsAre(HasSubstr("it cannot be true")));
  EXPECT_EQ(fusion_tuner_section_status(section), FUSION_TUNER_OK);
}

TEST_F(TunerTest, WhatEarlierProgramsExploredTooMuchIsMadeUpFor) {
  server_.SetChoice([](const v1::DeclareSection&) {
    v1::TuningChoice choice = ChoiceOf({10}, 1, v1::BOUNDED, 0.1);
    choice.set_exploration_excess(20);
    choice.set_total_value(100);
    for (int i = 1; i <= 40; ++i) AddProposal(choice, static_cast<uint64_t>(i), {20});
    return choice;
  });
  Create();
  fusion_tuner_section* section = TileSection();
  ASSERT_TRUE(WaitForBest(section, 10));
  int first = 0;
  for (int run = 1; run <= 200 && first == 0; ++run) {
    if (fusion_tuner_next(section)->integer == 20) first = run;
    fusion_tuner_report(section, 1);
  }
  // A tenth of 100 was allowed, so 10 were too much: a hundred runs.
  EXPECT_GE(first, 100);
  EXPECT_LE(first, 120);
}

TEST_F(TunerTest, ChoicesThatTheParametersCannotHaveAreIgnored) {
  server_.SetChoice([](const v1::DeclareSection&) {
    v1::TuningChoice choice = ChoiceOf({500}, 1, v1::CONVERGED);
    AddProposal(choice, 1, {1, 2});
    return choice;
  });
  Create();
  fusion_tuner_section* section = TileSection();
  v1::TuneResponse response;
  *response.mutable_choice() = ChoiceOf({7}, 1, v1::EXPLORING);
  response.mutable_choice()->set_section(77);  // of no one
  ASSERT_TRUE(server_.WaitFor([&] { return Counters().connected != 0; }));
  server_.Send(response);
  response.mutable_choice()->set_section(1);
  AddProposal(*response.mutable_choice(), 2, {101});
  server_.Send(response);
  ASSERT_TRUE(WaitForBest(section, 7));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(fusion_tuner_next(section)->integer, 7);
    fusion_tuner_report(section, 1);
  }
}

TEST_F(TunerTest, ASectionThatCallsItselfAndRunsThatEndElsewhere) {
  Create();
  fusion_tuner_section* section = TileSection();
  fusion_tuner_run outer, inner;
  ASSERT_EQ(fusion_tuner_run_begin(section, &outer), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_run_begin(section, &inner), FUSION_TUNER_OK);
  EXPECT_NE(outer.values, inner.values);
  EXPECT_EQ(inner.values->integer, 50);
  fusion_tuner_run copy = inner;
  EXPECT_EQ(fusion_tuner_run_stop(&inner), FUSION_TUNER_OK);
  EXPECT_EQ(fusion_tuner_run_stop(&inner), FUSION_TUNER_FAILED_PRECONDITION);
  EXPECT_EQ(fusion_tuner_run_stop(&copy), FUSION_TUNER_FAILED_PRECONDITION);
  std::thread([&] { EXPECT_EQ(fusion_tuner_run_report(&outer, 3), FUSION_TUNER_OK); }).join();
  ASSERT_EQ(fusion_tuner_flush(tuner_, 5), FUSION_TUNER_OK);
  EXPECT_EQ(server_.Runs(), 2u);
  ASSERT_EQ(fusion_tuner_run_begin(section, &outer), FUSION_TUNER_OK);
  EXPECT_EQ(fusion_tuner_run_report(&outer, -1), FUSION_TUNER_INVALID_ARGUMENT);
  EXPECT_EQ(fusion_tuner_run_cancel(&outer), FUSION_TUNER_OK);
  EXPECT_EQ(fusion_tuner_run_begin(section, nullptr), FUSION_TUNER_INVALID_ARGUMENT);
}

TEST_F(TunerTest, WrongOrderIsSaid) {
  Create();
  fusion_tuner_section* section = TileSection();
  EXPECT_EQ(fusion_tuner_stop(section), FUSION_TUNER_FAILED_PRECONDITION);
  EXPECT_THAT(fusion_tuner_message(), HasSubstr("section loop was not started in this thread"));
  EXPECT_EQ(fusion_tuner_start(section), FUSION_TUNER_OK);
  EXPECT_EQ(fusion_tuner_start(section), FUSION_TUNER_FAILED_PRECONDITION);
  for (double value : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_EQ(fusion_tuner_report(section, value), FUSION_TUNER_INVALID_ARGUMENT);
  EXPECT_EQ(fusion_tuner_stop(section), FUSION_TUNER_OK) << "the run went on";
  EXPECT_EQ(fusion_tuner_cancel(section), FUSION_TUNER_FAILED_PRECONDITION);
  EXPECT_EQ(fusion_tuner_fail(section), FUSION_TUNER_FAILED_PRECONDITION);
  fusion_tuner_section* undeclared = nullptr;
  ASSERT_EQ(fusion_tuner_section_create(tuner_, "later", &undeclared), FUSION_TUNER_OK);
  EXPECT_EQ(fusion_tuner_next(undeclared), nullptr);
  EXPECT_THAT(fusion_tuner_message(), HasSubstr("section later is not declared"));
  EXPECT_EQ(fusion_tuner_start(undeclared), FUSION_TUNER_FAILED_PRECONDITION);
  EXPECT_EQ(fusion_tuner_next(nullptr), nullptr);
  // Another thread has messages of its own.
  std::thread([] { EXPECT_STREQ(fusion_tuner_message(), ""); }).join();
}

TEST_F(TunerTest, OtherObjectivesAreReportedAndNotStopped) {
  Create();
  fusion_tuner_section* section = nullptr;
  ASSERT_EQ(fusion_tuner_section_create(tuner_, "throughput", &section), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_section_objective(section, "time", "s", 1), FUSION_TUNER_INVALID_ARGUMENT);
  ASSERT_EQ(fusion_tuner_section_objective(section, "rate", "byte/s", 1), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_section_parameter(section, Range("tile", 1, 3)), FUSION_TUNER_OK);
  ASSERT_EQ(fusion_tuner_section_declare(section), FUSION_TUNER_OK) << fusion_tuner_message();
  ASSERT_EQ(fusion_tuner_start(section), FUSION_TUNER_OK);
  EXPECT_EQ(fusion_tuner_stop(section), FUSION_TUNER_FAILED_PRECONDITION);
  EXPECT_THAT(fusion_tuner_message(), HasSubstr("tuned for rate"));
  EXPECT_EQ(fusion_tuner_report(section, 1e9), FUSION_TUNER_OK);
}

TEST_F(TunerTest, ThreadsThatEndLeaveTheirReports) {
  Create();
  fusion_tuner_section* section = TileSection();
  for (int round = 0; round < 20; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 5; ++i) fusion_tuner_report(section, 1);
      });
    for (std::thread& thread : threads) thread.join();
  }
  ASSERT_EQ(fusion_tuner_flush(tuner_, 5), FUSION_TUNER_OK);
  EXPECT_EQ(server_.Runs(), 400u);
  EXPECT_EQ(Counters().reported, 400u);
}

TEST_F(TunerTest, DestroyedWhileThreadsLiveThatUsedIt) {
  Create();
  fusion_tuner_section* section = TileSection();
  std::atomic<int> step{0};
  std::thread thread([&] {
    fusion_tuner_report(section, 1);
    step = 1;
    while (step != 2) std::this_thread::yield();
    // The same address or slot may be another section's by now.
    fusion_tuner_report(section, 1);
  });
  while (step != 1) std::this_thread::yield();
  Destroy();
  EXPECT_EQ(server_.Runs(), 1u) << "destroying sends what is left";
  Create();
  section = TileSection("other");
  step = 2;
  thread.join();
  ASSERT_EQ(fusion_tuner_flush(tuner_, 5), FUSION_TUNER_OK);
  EXPECT_EQ(Counters().reported, 1u);
}

}  // namespace
}  // namespace fusion::testing
