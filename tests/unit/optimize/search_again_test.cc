// What a job has measured changes its next search.
#include "server/optimize/search_again.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "server/optimize/learn_stage.h"
#include "server/rank/race.h"
#include "tests/example_source.h"
#include "tests/unit/dispatch/dispatch_fixture.h"

namespace fusion {
namespace {

class SearchAgainTest : public DispatchTest {
 protected:
  void SetUp() override {
    DispatchTest::SetUp();
    auto checked = CheckSource(testing::ExampleSource("gemver"), *Catalog::BuiltIn());
    ASSERT_TRUE(checked.ok()) << checked.status();
    for (auto& [symbol, value] : checked->sizes) value = 2048;
    submission_ = *std::move(checked);
    Begin();
  }
  // As a job is after its first search.
  void Begin() {
    plans_ = Plan(model_);
    auto code = GenerateCode(submission_, model_, plans_);
    ASSERT_TRUE(code.ok()) << code.status();
    code_ = *std::move(code);
  }
  Plans Plan(const CostModel& model) {
    auto plans = PlanCovers(submission_, model, 30, false);
    EXPECT_TRUE(plans.ok()) << plans.status();
    return *std::move(plans);
  }
  // As if the candidates so far took `factor` times as long as predicted.
  void Measure(size_t count, double factor) {
    for (size_t i = 0; i < count; ++i) {
      v1::Candidate& candidate = *code_.set.mutable_candidates(i)->mutable_description();
      candidate.set_outcome(v1::OK);
      candidate.set_steady(true);
      candidate.mutable_measured()->set_median(factor * plans_.covers.covers[i].seconds);
    }
  }
  CostModel Taught() {
    const PipelineContext context{*store_,  *dispatcher_,        searches_, *Catalog::BuiltIn(),
                                  NewJob(), CancellationToken(), nullptr,   ""};
    auto taught = TaughtModel(submission_, model_, v1::COLD, plans_, code_, context);
    EXPECT_TRUE(taught.ok()) << taught.status();
    return *std::move(taught);
  }
  std::vector<WaitingCandidate> SearchAgain() {
    const CostModel taught = Taught();
    const Plans again = Plan(taught);
    auto waiting = AddCandidates(submission_, taught, again, kMost, 2, built_, &plans_, &code_);
    EXPECT_TRUE(waiting.ok()) << waiting.status();
    EXPECT_LE(waiting->unseen_seconds, again.unseen_seconds);
    return std::move(waiting->candidates);
  }

  static constexpr int kMost = 12;
  SearchPool searches_{SearchLimits()};
  const CostModel model_{DescribedDevice(v1::CUDA)};
  Submission submission_;
  Plans plans_;
  GeneratedCode code_;
  v1::BuiltCode built_;
};

TEST_F(SearchAgainTest, KernelsThatDisappointGiveWayToOthers) {
  constexpr size_t kMeasured = 16;
  std::set<const CodeUnit*> measured;
  for (size_t i = 0; i < kMeasured; ++i) measured.insert(code_.units[i].begin(), code_.units[i].end());
  Measure(kMeasured, 3);
  const std::vector<WaitingCandidate> waiting = SearchAgain();
  ASSERT_FALSE(waiting.empty());
  const std::vector<const CodeUnit*>& first = code_.units[waiting.front().position];
  EXPECT_TRUE(std::none_of(first.begin(), first.end(),
                           [&](const CodeUnit* unit) { return measured.contains(unit); }));
  EXPECT_LT(waiting.front().seconds, 3 * plans_.covers.covers[0].seconds)
      << "it may be faster than what was measured";
}

TEST_F(SearchAgainTest, WhatWasTimedDoesNotWaitAndNothingIsACandidateTwice) {
  Measure(16, 1.5);
  const size_t before = code_.units.size();
  const std::vector<WaitingCandidate> waiting = SearchAgain();
  EXPECT_GT(code_.units.size(), before);
  EXPECT_EQ(code_.units.size(), plans_.covers.covers.size());
  std::set<std::string> keys;
  for (const v1::PlannedCandidate& planned : code_.set.candidates())
    EXPECT_TRUE(keys.insert(planned.description().key()).second);
  std::set<int> positions;
  for (const WaitingCandidate& candidate : waiting) {
    EXPECT_TRUE(positions.insert(candidate.position).second);
    EXPECT_EQ(code_.set.candidates(candidate.position).description().outcome(), v1::OUTCOME_UNSPECIFIED);
    // Its kernels are those of its cover.
    const std::vector<int>& columns = plans_.covers.covers.at(candidate.position).columns;
    ASSERT_EQ(columns.size(), code_.units[candidate.position].size());
    for (size_t k = 0; k < columns.size(); ++k) {
      auto unit = code_.library->Add(plans_.space.implementations.at(columns[k]), false);
      ASSERT_TRUE(unit.ok()) << unit.status();
      EXPECT_EQ(*unit, code_.units[candidate.position][k]);
    }
  }
  EXPECT_LE(waiting.size(), size_t{kMost});
  // And none of the kernels that are least known is met too often.
  std::map<int, int> of_group;
  for (const WaitingCandidate& candidate : waiting) EXPECT_LE(++of_group[candidate.group], Race::kOfGroup);
}

TEST_F(SearchAgainTest, TheKernelsOfACoverMeasuredAloneArePredictedByTheirTimes) {
  // One kernel computes all: its time is known nearly as it was measured.
  const auto alone = std::find_if(plans_.covers.covers.begin(), plans_.covers.covers.end(),
                                  [](const CoverSolution& cover) { return cover.columns.size() == 1; });
  ASSERT_NE(alone, plans_.covers.covers.end());
  const size_t position = alone - plans_.covers.covers.begin();
  v1::Candidate& candidate = *code_.set.mutable_candidates(position)->mutable_description();
  candidate.set_outcome(v1::OK);
  candidate.set_steady(true);
  candidate.mutable_measured()->set_median(0.5 * alone->seconds);
  const Plans again = Plan(Taught());
  EXPECT_EQ(again.covers.covers[0].columns.size(), 1u);
  EXPECT_NEAR(again.covers.covers[0].seconds, 0.5 * alone->seconds, 0.02 * alone->seconds);
}

TEST_F(SearchAgainTest, WhatIsLessSureComesEarlier) {
  Measure(16, 1);
  const std::vector<WaitingCandidate> waiting = SearchAgain();
  ASSERT_GE(waiting.size(), 2u);
  const auto least = [](const WaitingCandidate& candidate) {
    return candidate.seconds * std::exp(-2 * candidate.deviation);
  };
  EXPECT_TRUE(std::is_sorted(
      waiting.begin(), waiting.end(),
      [&](const WaitingCandidate& a, const WaitingCandidate& b) { return least(a) < least(b); }));
  EXPECT_FALSE(std::is_sorted(
      waiting.begin(), waiting.end(),
      [](const WaitingCandidate& a, const WaitingCandidate& b) { return a.seconds < b.seconds; }));
  for (const WaitingCandidate& candidate : waiting) EXPECT_GT(candidate.deviation, 0);
}

TEST_F(SearchAgainTest, KernelsThatDoNotBuildAreNotMetAgain) {
  Measure(16, 1.5);
  const int before = static_cast<int>(code_.units.size());
  std::vector<WaitingCandidate> waiting = SearchAgain();
  const auto found = std::find_if(waiting.begin(), waiting.end(),
                                  [&](const auto& candidate) { return candidate.position >= before; });
  ASSERT_NE(found, waiting.end());
  EXPECT_EQ(code_.set.candidates(found->position).description().search(), 2);
  const FusionImplementation kernel =
      plans_.space.implementations[plans_.covers.covers[found->position].columns[0]];
  // The same again, where it has not built.
  Begin();
  Measure(16, 1.5);
  auto unit = code_.library->Add(kernel, false);
  ASSERT_TRUE(unit.ok()) << unit.status();
  (*built_.mutable_failed())[(*unit)->build.key()];
  waiting = SearchAgain();
  EXPECT_FALSE(waiting.empty());
  for (const WaitingCandidate& candidate : waiting)
    if (candidate.position >= before) {
      EXPECT_THAT(code_.units[candidate.position], ::testing::Not(::testing::Contains(*unit)));
    }
}

TEST_F(SearchAgainTest, NothingIsStoredBeforeTheJobEnds) {
  Measure(16, 2);
  Taught();
  const auto families = store_->KernelFamilies({.device_class = model_.device().name(),
                                                .cache = v1::CacheState_Name(v1::COLD),
                                                .toolkit = model_.device().toolkit_version()});
  ASSERT_TRUE(families.ok()) << families.status();
  EXPECT_TRUE(families->empty());
  const auto statistics = store_->ModelStatistics({.device_class = model_.device().name(),
                                                   .cache = v1::CacheState_Name(v1::COLD),
                                                   .model_version = kCostModelVersion});
  ASSERT_TRUE(statistics.ok()) << statistics.status();
  EXPECT_EQ(*statistics, "");
}

}  // namespace
}  // namespace fusion
