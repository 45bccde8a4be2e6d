// Rings, queues, published choices and batches, each alone.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <set>
#include <thread>
#include <vector>

#include "client/tuner/choice.h"
#include "client/tuner/outbox.h"
#include "client/tuner/proposal_queue.h"
#include "client/tuner/report_ring.h"

namespace fusion::tuning {
namespace {

TEST(ReportRingTest, KeepsTheOrderAndSaysWhenItIsFull) {
  ReportRing ring;
  EXPECT_TRUE(ring.empty());
  uint64_t pushed = 0, drained = 0;
  for (int round = 0; round < 5; ++round) {
    while (ring.Push({.proposal = pushed}, 10)) ++pushed;
    EXPECT_EQ(pushed - drained, ReportRing::kCapacity - 10);
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(ring.Push({.proposal = pushed++}));
    EXPECT_FALSE(ring.Push({}));
    EXPECT_EQ(ring.Drain([&](const Sample& sample) { EXPECT_EQ(sample.proposal, drained++); }),
              ReportRing::kCapacity);
  }
}

TEST(ReportRingTest, OneThreadPushesWhileAnotherDrains) {
  ReportRing ring;
  constexpr uint64_t kSamples = 200'000;
  std::thread writer([&] {
    for (uint64_t i = 0; i < kSamples;)
      if (ring.Push({.proposal = i, .value = static_cast<double>(i)}))
        ++i;
      else
        std::this_thread::yield();
  });
  uint64_t expected = 0;
  while (expected < kSamples)
    ring.Drain([&](const Sample& sample) {
      EXPECT_EQ(sample.proposal, expected);
      EXPECT_EQ(sample.value, static_cast<double>(expected));
      ++expected;
    });
  writer.join();
}

TEST(ProposalQueueTest, EachIsTakenOnceWithItsValues) {
  ProposalQueue queue(2);
  constexpr uint64_t kProposals = 50'000;
  std::atomic<uint64_t> taken{0}, sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (taken < kProposals) {
        uint64_t proposal, generation;
        fusion_tuner_value values[2];
        if (!queue.Pop(&proposal, &generation, values)) {
          std::this_thread::yield();
          continue;
        }
        EXPECT_EQ(values[0].integer, static_cast<int64_t>(proposal));
        EXPECT_EQ(values[1].real, static_cast<double>(proposal) / 2);
        EXPECT_EQ(generation, proposal + 1);
        sum += proposal;
        ++taken;
      }
    });
  for (uint64_t i = 0; i < kProposals;) {
    fusion_tuner_value values[2];
    values[0].integer = static_cast<int64_t>(i);
    values[1].real = static_cast<double>(i) / 2;
    if (queue.Push(i, i + 1, values))
      ++i;
    else
      std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, kProposals * (kProposals - 1) / 2);
  EXPECT_TRUE(queue.empty());
}

TEST(ProposalQueueTest, HoldsSoMany) {
  ProposalQueue queue(0);
  uint64_t proposal, generation;
  EXPECT_FALSE(queue.Pop(&proposal, &generation, nullptr));
  for (size_t i = 0; i < ProposalQueue::kCapacity; ++i) EXPECT_TRUE(queue.Push(i, 0, nullptr));
  EXPECT_FALSE(queue.Push(99, 0, nullptr));
  EXPECT_TRUE(queue.Pop(&proposal, &generation, nullptr));
  EXPECT_EQ(proposal, 0u);
  EXPECT_TRUE(queue.Push(99, 0, nullptr));
}

TEST(PublishedChoiceTest, ReadersSeeOneChoiceOrAnother) {
  PublishedChoice published;
  std::vector<Configuration> configurations(2);
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t)
    readers.emplace_back([&] {
      uint64_t version = 0;
      Choice choice;
      while (!done)
        if (published.ReadNewer(&version, &choice)) {
          EXPECT_EQ(choice.expected, static_cast<double>(choice.generation));
          EXPECT_EQ(choice.best, &configurations[choice.generation % 2]);
          EXPECT_EQ(choice.converged, choice.generation % 2 == 1);
        }
    });
  for (uint64_t i = 1; i <= 100'000; ++i)
    published.Write({.generation = i,
                     .best = &configurations[i % 2],
                     .expected = static_cast<double>(i),
                     .limited = true,
                     .converged = i % 2 == 1});
  done = true;
  for (std::thread& reader : readers) reader.join();
}

TEST(OutboxTest, RunsOfTheChoiceAreJoinedAndProposalsAreNot) {
  Outbox outbox;
  Configuration a{{1}, {}}, b{{2}, {}};
  for (double value : {1.0, 2.0, 6.0}) outbox.AddChoice(1, &a, false, value);
  outbox.AddChoice(1, &b, false, 5);
  outbox.AddChoice(1, &a, true, 0);
  outbox.AddProposal(1, 7, {3}, false, 4, 0.5);
  outbox.AddProposal(1, 8, {3}, true, 0, 0.5);
  EXPECT_TRUE(outbox.has_proposals());
  ASSERT_TRUE(outbox.Seal());
  EXPECT_FALSE(outbox.has_proposals());
  const v1::ReportBatch& batch = *outbox.Next();
  EXPECT_EQ(batch.sequence(), 1u);
  ASSERT_EQ(batch.reports_size(), 4);
  EXPECT_EQ(batch.reports(0).count(), 3u);
  EXPECT_EQ(batch.reports(0).failures(), 1u);
  EXPECT_DOUBLE_EQ(batch.reports(0).mean(), 3);
  EXPECT_DOUBLE_EQ(batch.reports(0).squared_deviations(), 4 + 1 + 9);
  EXPECT_EQ(batch.reports(0).minimum(), 1);
  EXPECT_EQ(batch.reports(2).proposal(), 7u);
  EXPECT_EQ(batch.reports(3).failures(), 1u);
  EXPECT_EQ(outbox.Acknowledge(1), 7u);
  EXPECT_TRUE(outbox.Stored(1));
}

TEST(OutboxTest, BatchesAreSentAgainUntilTheyAreAcknowledged) {
  Outbox outbox;
  Configuration a{{1}, {}};
  for (size_t i = 1; i <= Outbox::kMostBatches; ++i) {
    outbox.AddChoice(1, &a, false, 1);
    ASSERT_TRUE(outbox.Seal());
  }
  outbox.AddChoice(1, &a, false, 1);
  EXPECT_FALSE(outbox.Seal()) << "as many as may wait";
  outbox.MarkSent();
  outbox.MarkSent();
  EXPECT_EQ(outbox.Next()->sequence(), 3u);
  EXPECT_EQ(outbox.Acknowledge(1), 1u);
  EXPECT_EQ(outbox.Next()->sequence(), 3u);
  outbox.Restart();
  EXPECT_EQ(outbox.Next()->sequence(), 2u);
  EXPECT_TRUE(outbox.Seal());
  EXPECT_EQ(outbox.last_sequence(), Outbox::kMostBatches + 1);
}

TEST(OutboxTest, TheOldestAreDroppedWhenTheyBecomeTooMany) {
  Outbox outbox;
  Configuration first{{0}, {}};
  outbox.AddChoice(1, &first, false, 1);
  outbox.AddChoice(1, &first, false, 1);
  for (size_t i = 1; i <= Outbox::kMostReports; ++i) outbox.AddProposal(1, i, {1}, false, 1, 0.5);
  EXPECT_EQ(outbox.dropped_runs(), 2u);
  outbox.AddChoice(1, &first, false, 1);  // drops a proposal, and is one of its own
  EXPECT_EQ(outbox.dropped_runs(), 3u);
  outbox.AddChoice(1, &first, false, 3);
  ASSERT_TRUE(outbox.Seal());
  ASSERT_EQ(outbox.Next()->reports_size(), static_cast<int>(Outbox::kMostReports));
  EXPECT_EQ(outbox.Next()->reports(0).proposal(), 2u);
  EXPECT_EQ(outbox.Next()->reports(static_cast<int>(Outbox::kMostReports) - 1).count(), 2u);
}

TEST(OutboxTest, AnyPositiveValuesAreJoined) {
  constexpr double kGreatest = std::numeric_limits<double>::max(),
                   kLeast = std::numeric_limits<double>::denorm_min();
  for (const std::vector<double>& values :
       {std::vector<double>{kGreatest, 1, kGreatest}, {1e-300, 1e300}, {kLeast, kLeast, 1e-310}}) {
    v1::TuningReport report;
    for (const double value : values) AddValue(report, value);
    EXPECT_TRUE(std::isfinite(report.mean()) && report.mean() > 0);
    EXPECT_TRUE(std::isfinite(report.squared_deviations()) && report.squared_deviations() >= 0);
    EXPECT_LE(report.minimum(), report.mean());
  }
}

TEST(OutboxTest, AProposalTellsWhatItCostWhereThatIsKnown) {
  Outbox outbox;
  outbox.AddProposal(1, 5, {1}, false, 1, -0.25);
  outbox.AddProposal(1, 6, {1}, false, 1, std::nan(""));
  ASSERT_TRUE(outbox.Seal());
  EXPECT_EQ(outbox.Next()->reports(0).excess(), -0.25);
  EXPECT_FALSE(outbox.Next()->reports(1).has_excess());
}

TEST(OutboxTest, WhatARefusedSectionReportedIsDiscarded) {
  Outbox outbox;
  Configuration a{{1}, {}};
  outbox.AddChoice(1, &a, false, 1);
  outbox.AddChoice(2, &a, false, 1);
  outbox.AddProposal(1, 5, {1}, false, 1, 0.5);
  EXPECT_EQ(outbox.Discard(1), 2u);
  EXPECT_FALSE(outbox.has_proposals());
  outbox.AddChoice(2, &a, false, 1);
  ASSERT_TRUE(outbox.Seal());
  EXPECT_EQ(outbox.Acknowledge(1), 2u);
}

}  // namespace
}  // namespace fusion::tuning
