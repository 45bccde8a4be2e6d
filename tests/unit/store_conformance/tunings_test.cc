#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/unit/store_conformance/store_conformance.h"

namespace fusion {
namespace {

std::string Point(std::initializer_list<double> values) {
  std::string bytes;
  for (double value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  return bytes;
}

class TuningsTest : public StoreConformanceTest {
 protected:
  TuningRecord Open(const std::string& context = "n=100", const std::string& device = "cpu",
                    bool replace = false) {
    TuningRecord tuning;
    tuning.key = {"program", "section", device, context};
    tuning.declaration = "declaration of " + context;
    tuning.strategy = "portfolio";
    tuning.defaults = Point({8});
    absl::StatusOr<TuningRecord> opened = store_->OpenTuning(tuning, replace, At(10));
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *opened : TuningRecord{};
  }
  static TuningReportRecord Report(const TuningRecord& tuning, double value, double mean, int64_t count = 1,
                                   int64_t time = 20, int64_t generation = 1) {
    return {.tuning = tuning.number,
            .generation = generation,
            .time = At(time),
            .runs = {Point({value}), count, mean, 0, mean, 0}};
  }
  absl::Status Commit(const std::string& process, int64_t sequence, std::vector<TuningReportRecord> reports) {
    return store_->CommitTunings({{process, sequence, std::move(reports)}}, {}, At(20));
  }
  TuningRecord Get(const TuningRecord& tuning) {
    absl::StatusOr<TuningRecord> now = store_->GetTuning(tuning.id);
    EXPECT_TRUE(now.ok()) << now.status();
    return now.ok() ? *now : TuningRecord{};
  }
  std::vector<TuningConfigurationRecord> Configurations(const TuningRecord& tuning, int64_t generation = 1,
                                                        bool largest_first = false) {
    auto read = store_->TuningConfigurations(tuning.number, generation, largest_first, 100);
    EXPECT_TRUE(read.ok()) << read.status();
    return read.ok() ? *read : std::vector<TuningConfigurationRecord>();
  }
  size_t Reports(const TuningRecord& tuning) {
    auto page = store_->ListTuningReports(tuning.number, 10000, "");
    EXPECT_TRUE(page.ok()) << page.status();
    return page.ok() ? page->reports.size() : 0;
  }
};

TEST_P(TuningsTest, OpeningTwiceIsOneTuning) {
  const TuningRecord first = Open();
  EXPECT_EQ(first.id.rfind("tunings/", 0), 0u);
  EXPECT_EQ(first.loads, 1);
  EXPECT_EQ(first.progress.generation, 1);
  Reopen();
  const TuningRecord second = Open();
  EXPECT_EQ(second.id, first.id);
  EXPECT_EQ(second.loads, 2);
  EXPECT_NE(Open("n=200").id, first.id);
  EXPECT_NE(Open("n=100", "other").id, first.id);
  auto found = store_->FindTuning(first.key);
  ASSERT_TRUE(found.ok() && *found);
  EXPECT_EQ((*found)->declaration, "declaration of n=100");
  auto none = store_->FindTuning({"program", "section", "cpu", "n=7"});
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(*none);
  EXPECT_TRUE(absl::IsNotFound(store_->GetTuning("tunings/none").status()));
}

TEST_P(TuningsTest, StatisticsAreThoseOfAllRuns) {
  const TuningRecord tuning = Open();
  const double values[] = {3, 5, 4, 9, 2.5};
  // Two reports of two and three runs, in batches of their own.
  auto runs = [&](int from, int to) {
    TuningConfigurationRecord sum{.configuration = Point({8}), .minimum = 1e9};
    for (int i = from; i < to; ++i) sum.mean += values[i] / (to - from);
    for (int i = from; i < to; ++i) {
      ++sum.count;
      sum.squared_deviations += std::pow(values[i] - sum.mean, 2);
      sum.minimum = std::min(sum.minimum, values[i]);
    }
    return TuningReportRecord{
        .tuning = tuning.number, .generation = 1, .time = At(30), .runs = sum, .exploration_excess = 0.5};
  };
  ASSERT_TRUE(Commit("p", 1, {runs(0, 2)}).ok());
  ASSERT_TRUE(Commit("p", 2, {runs(2, 5)}).ok());
  TuningReportRecord failed = runs(0, 0);
  failed.runs.minimum = failed.runs.mean = 0;
  failed.runs.failures = 3;
  ASSERT_TRUE(Commit("p", 3, {failed}).ok());
  const auto all = Configurations(tuning);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].count, 5);
  EXPECT_NEAR(all[0].mean, 4.7, 1e-12);
  double squares = 0;
  for (double value : values) squares += std::pow(value - 4.7, 2);
  EXPECT_NEAR(all[0].squared_deviations, squares, 1e-12);
  EXPECT_EQ(all[0].minimum, 2.5);
  EXPECT_EQ(all[0].failures, 3);
  const TuningRecord now = Get(tuning);
  EXPECT_EQ(now.runs, 5);
  EXPECT_EQ(now.failures, 3);
  EXPECT_EQ(now.reports, 3);
  EXPECT_EQ(now.configurations, 1);
  EXPECT_NEAR(now.total_value, 23.5, 1e-12);
  EXPECT_DOUBLE_EQ(now.exploration_excess, 1.5);
  EXPECT_NEAR(now.default_value, 4.7, 1e-12);
  EXPECT_EQ(now.reported, At(30));
}

TEST_P(TuningsTest, SumsStayWithinWhatARowHolds) {
  const TuningRecord absurd = Open(), other = Open("n=200");
  constexpr double kGreatest = std::numeric_limits<double>::max();
  constexpr int64_t kMany = int64_t{1} << 62;
  for (int64_t sequence = 1; sequence <= 3; ++sequence) {
    TuningReportRecord huge = Report(absurd, 8, kGreatest, kMany), tiny = Report(absurd, 8, 5e-324, kMany);
    huge.runs.squared_deviations = kGreatest;
    huge.runs.failures = kMany;
    huge.exploration_excess = kGreatest;
    // Both are in one commit: a sum that overflows for one of them is no trouble for the other.
    ASSERT_TRUE(store_
                    ->CommitTunings({{"absurd", sequence, {huge, huge, tiny}},
                                     {"other", sequence, {Report(other, 8, 2)}}},
                                    {}, At(20))
                    .ok());
  }
  EXPECT_EQ(Get(other).runs, 3);
  EXPECT_DOUBLE_EQ(Get(other).total_value, 6);
  const TuningRecord now = Get(absurd);
  EXPECT_EQ(now.runs, int64_t{1} << 53);
  EXPECT_EQ(now.failures, int64_t{1} << 53);
  EXPECT_EQ(now.total_value, kGreatest);
  EXPECT_EQ(now.exploration_excess, kGreatest);
  const auto configurations = Configurations(absurd);
  ASSERT_EQ(configurations.size(), 1u);
  EXPECT_TRUE(std::isfinite(configurations[0].mean) && configurations[0].mean > 0);
  EXPECT_EQ(configurations[0].squared_deviations, kGreatest);
  EXPECT_EQ(configurations[0].count, int64_t{1} << 53);
}

TEST_P(TuningsTest, BatchCountsOnce) {
  const TuningRecord tuning = Open();
  for (int time = 0; time < 3; ++time)
    ASSERT_TRUE(Commit("p", 1, {Report(tuning, 8, 2), Report(tuning, 9, 3)}).ok());
  EXPECT_EQ(Reports(tuning), 2u);
  Reopen();
  ASSERT_TRUE(Commit("p", 1, {Report(tuning, 8, 2)}).ok());
  EXPECT_EQ(Get(tuning).runs, 2);
  EXPECT_EQ(*store_->TuningSequence("p"), 1);
  EXPECT_EQ(*store_->TuningSequence("q"), 0);
  // Of one group, too; other processes have sequences of their own.
  ASSERT_TRUE(store_
                  ->CommitTunings({{"p", 2, {Report(tuning, 8, 2)}},
                                   {"p", 2, {Report(tuning, 8, 2)}},
                                   {"q", 7, {Report(tuning, 8, 2)}},
                                   {"p", 3, {}}},
                                  {}, At(21))
                  .ok());
  EXPECT_EQ(Reports(tuning), 4u);
  EXPECT_EQ(Get(tuning).runs, 4);
  EXPECT_EQ(*store_->TuningSequence("p"), 3);
  EXPECT_EQ(*store_->TuningSequence("q"), 7);
}

TEST_P(TuningsTest, GroupThatFailsLeavesNothing) {
  const TuningRecord tuning = Open();
  TuningReportRecord stray = Report(tuning, 8, 2);
  stray.tuning = 999;
  EXPECT_FALSE(store_->CommitTunings({{"p", 1, {Report(tuning, 8, 2)}}, {"q", 1, {stray}}}, {}, At(20)).ok());
  EXPECT_EQ(Reports(tuning), 0u);
  EXPECT_EQ(*store_->TuningSequence("p"), 0);
  EXPECT_TRUE(Configurations(tuning).empty());
}

TEST_P(TuningsTest, BestFirst) {
  const TuningRecord tuning = Open();
  TuningReportRecord failed = Report(tuning, 4, 0, 0);
  failed.runs.failures = 1;
  ASSERT_TRUE(
      Commit("p", 1, {Report(tuning, 1, 5), Report(tuning, 2, 3), Report(tuning, 3, 4), failed}).ok());
  auto order = [&](bool largest_first) {
    std::string text;
    for (const auto& row : Configurations(tuning, 1, largest_first)) {
      double value = 0;
      std::memcpy(&value, row.configuration.data(), sizeof(value));
      text += std::to_string(static_cast<int>(value));
    }
    return text;
  };
  EXPECT_EQ(order(false), "2314");
  EXPECT_EQ(order(true), "1324");
  EXPECT_EQ(Get(tuning).configurations, 4);
}

TEST_P(TuningsTest, ProgressAndGenerations) {
  const TuningRecord tuning = Open();
  TuningProgressUpdate update{.tuning = tuning.number};
  update.progress = {.generation = 1,
                     .best = Point({9}),
                     .best_value = 1.5,
                     .best_relative_error = 0.01,
                     .phase = "BOUNDED",
                     .provenance = "NEAR",
                     .provenance_tuning = "tunings/1",
                     .drifts = 2,
                     .evaluations = 17};
  update.convergence = {{1, Point({8}), 2}, {17, Point({9}), 1.5}};
  ASSERT_TRUE(store_->CommitTunings({{"p", 1, {Report(tuning, 8, 2)}}}, {update}, At(20)).ok());
  TuningRecord now = Get(tuning);
  EXPECT_EQ(now.progress.best, Point({9}));
  EXPECT_EQ(now.progress.best_value, 1.5);
  EXPECT_EQ(now.progress.phase, "BOUNDED");
  EXPECT_EQ(now.progress.provenance, "NEAR");
  EXPECT_EQ(now.progress.provenance_tuning, "tunings/1");
  EXPECT_EQ(now.progress.drifts, 2);
  EXPECT_EQ(now.progress.evaluations, 17);
  EXPECT_EQ(now.configurations, 1);
  EXPECT_EQ(store_->TuningConvergence(tuning.number, 1)->size(), 2u);

  // A new generation, with a report of it and a late one of the old.
  update.progress.generation = 2;
  update.convergence.clear();
  ASSERT_TRUE(
      store_
          ->CommitTunings({{"p", 2, {Report(tuning, 8, 2, 1, 21, 2), Report(tuning, 7, 2, 1, 21, 1)}}},
                          {update}, At(21))
          .ok());
  now = Get(tuning);
  EXPECT_EQ(now.progress.generation, 2);
  EXPECT_EQ(now.configurations, 1);
  EXPECT_EQ(now.runs, 3);
  EXPECT_EQ(Configurations(tuning, 1).size(), 2u);
  EXPECT_EQ(Configurations(tuning, 2).size(), 1u);
  EXPECT_TRUE(store_->TuningConvergence(tuning.number, 2)->empty());

  // What a search of before a reset still says changes nothing.
  const auto reset = store_->ResetTuning(tuning.id);
  ASSERT_TRUE(reset.ok()) << reset.status();
  EXPECT_EQ(reset->progress.generation, 3);
  EXPECT_EQ(reset->runs, 0);
  EXPECT_EQ(reset->progress.best, "");
  ASSERT_TRUE(store_->CommitTunings({}, {update}, At(22)).ok());
  EXPECT_EQ(Get(tuning).progress.best, "");
  EXPECT_EQ(Get(tuning).progress.generation, 3);
  EXPECT_EQ(Reports(tuning), 3u);
  EXPECT_TRUE(absl::IsNotFound(store_->ResetTuning("tunings/none").status()));

  // A search that goes on says the same in its progress.
  ASSERT_TRUE(Commit("p", 3, {Report(tuning, 8, 2, 5, 22, 3)}).ok());
  EXPECT_EQ(Get(tuning).runs, 5);
  update.progress.generation = 4;
  update.reset = true;
  ASSERT_TRUE(store_->CommitTunings({}, {update}, At(23)).ok());
  EXPECT_EQ(Get(tuning).runs, 0);
  EXPECT_EQ(Get(tuning).progress.generation, 4);
  update.reset = false;

  // Old statistics go.
  update.progress.generation = 10;
  ASSERT_TRUE(store_->CommitTunings({}, {update}, At(22)).ok());
  EXPECT_TRUE(Configurations(tuning, 1).empty());
}

TEST_P(TuningsTest, ReplacingTheDeclarationBeginsAnew) {
  const TuningRecord tuning = Open();
  ASSERT_TRUE(Commit("p", 1, {Report(tuning, 8, 2)}).ok());
  const TuningRecord replaced = Open("n=100", "cpu", true);
  EXPECT_EQ(replaced.id, tuning.id);
  EXPECT_EQ(replaced.progress.generation, 2);
  EXPECT_EQ(replaced.runs, 0);
  EXPECT_EQ(Reports(tuning), 1u);
}

TEST_P(TuningsTest, ListsTheNewestReportFirst) {
  std::vector<TuningRecord> tunings;
  for (int i = 0; i < 5; ++i) tunings.push_back(Open("n=" + std::to_string(i)));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(Commit("p", i + 1, {Report(tunings[i], 8, 2, 1, 100 - i)}).ok());
  std::string order, token;
  int pages = 0;
  do {
    auto page = store_->ListTunings("program", 2, token);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const TuningRecord& tuning : page->tunings) order += tuning.key.context + " ";
    token = page->next_page_token;
    ++pages;
  } while (!token.empty());
  EXPECT_EQ(order, "n=0 n=1 n=2 n=3 n=4 ");
  EXPECT_EQ(pages, 3);
  EXPECT_EQ(store_->ListTunings("", 0, "")->tunings.size(), 5u);
  EXPECT_TRUE(store_->ListTunings("other", 0, "")->tunings.empty());
  EXPECT_FALSE(store_->ListTunings("", 0, "x").ok());
  EXPECT_FALSE(store_->ListTunings("", -1, "").ok());
  // Without a best there is nothing to learn from.
  EXPECT_TRUE(store_->TuningsOfSection("program", "section", 10)->empty());
  TuningProgressUpdate update{.tuning = tunings[3].number,
                              .progress = {.best = Point({1}), .phase = "BOUNDED"}};
  ASSERT_TRUE(store_->CommitTunings({}, {update}, At(20)).ok());
  EXPECT_EQ(store_->TuningsOfSection("program", "section", 10)->size(), 1u);
}

TEST_P(TuningsTest, ReportsInPages) {
  const TuningRecord tuning = Open();
  for (int i = 1; i <= 5; ++i) ASSERT_TRUE(Commit("p", i, {Report(tuning, i, i)}).ok());
  auto page = store_->ListTuningReports(tuning.number, 3, "");
  ASSERT_TRUE(page.ok()) << page.status();
  ASSERT_EQ(page->reports.size(), 3u);
  EXPECT_EQ(page->reports[0].number, 1);
  EXPECT_EQ(page->reports[0].process, "p");
  EXPECT_EQ(page->reports[2].runs.mean, 3);
  page = store_->ListTuningReports(tuning.number, 3, page->next_page_token);
  ASSERT_EQ(page->reports.size(), 2u);
  EXPECT_EQ(page->next_page_token, "");
  EXPECT_FALSE(store_->ListTuningReports(tuning.number, 3, "x").ok());
}

TEST_P(TuningsTest, OldReportsAndProcessesGo) {
  options_.tuning.reports = 100;
  options_.tuning.processes = std::chrono::seconds(60);
  Reopen();
  const TuningRecord tuning = Open();
  for (int i = 1; i <= 250; ++i) ASSERT_TRUE(Commit("old", i, {Report(tuning, 8, 2)}).ok());
  EXPECT_EQ(Reports(tuning), 100u);
  EXPECT_EQ(Get(tuning).runs, 250);
  EXPECT_EQ(Configurations(tuning)[0].count, 250);
  ASSERT_TRUE(store_->CommitTunings({{"new", 1, {}}}, {}, At(60)).ok());
  EXPECT_EQ(*store_->TuningSequence("old"), 250);
  ASSERT_TRUE(store_->CommitTunings({{"newer", 1, {}}}, {}, At(81)).ok());
  EXPECT_EQ(*store_->TuningSequence("old"), 0);
  EXPECT_EQ(store_->ListTuningReports(tuning.number, 1, "")->reports[0].process, "");
}

FOR_EVERY_STORE(TuningsTest);

}  // namespace
}  // namespace fusion
