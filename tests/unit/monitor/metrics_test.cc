#include "base/monitor/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "base/monitor/process_metrics.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricsTest, TextHasHelpTypeAndSeriesByLabel) {
  Metrics metrics;
  auto& ended = metrics.AddCounter("fusion_jobs_ended_total", "Jobs that ended.", {"state"});
  auto& queued = metrics.AddGauge("fusion_tasks_queued", "Tasks that wait.", {"kind"});
  ended.With({"SUCCEEDED"}).Add();
  ended.With({"FAILED"}).Add(2);
  ended.With({"SUCCEEDED"}).Add();
  queued.With({"BUILD"}).Set(1.5);
  EXPECT_EQ(metrics.Text(),
            "# HELP fusion_jobs_ended_total Jobs that ended.\n"
            "# TYPE fusion_jobs_ended_total counter\n"
            "fusion_jobs_ended_total{state=\"FAILED\"} 2\n"
            "fusion_jobs_ended_total{state=\"SUCCEEDED\"} 2\n"
            "# HELP fusion_tasks_queued Tasks that wait.\n"
            "# TYPE fusion_tasks_queued gauge\n"
            "fusion_tasks_queued{kind=\"BUILD\"} 1.5\n");
}

TEST(MetricsTest, AFamilyWithoutLabelsIsThereFromTheStart) {
  Metrics metrics;
  auto& lost = metrics.AddCounter("fusion_worker_lost_total", "Lost.");
  EXPECT_THAT(metrics.Text(), HasSubstr("\nfusion_worker_lost_total 0\n"));
  lost->Add(3);
  EXPECT_THAT(metrics.Text(), HasSubstr("\nfusion_worker_lost_total 3\n"));
}

TEST(MetricsTest, HistogramsAreCumulativeAndBoundsBelongToTheirBucket) {
  Metrics metrics;
  auto& seconds = metrics.AddHistogram("fusion_wait_seconds", "Waits.", {0.1, 1, 10}, {"kind"});
  for (double value : {0.05, 0.1, 0.5, 10.0, 11.0, std::nan("")}) seconds.With({"TIME"}).Observe(value);
  EXPECT_EQ(metrics.Text(),
            "# HELP fusion_wait_seconds Waits.\n"
            "# TYPE fusion_wait_seconds histogram\n"
            "fusion_wait_seconds_bucket{kind=\"TIME\",le=\"0.1\"} 2\n"
            "fusion_wait_seconds_bucket{kind=\"TIME\",le=\"1\"} 3\n"
            "fusion_wait_seconds_bucket{kind=\"TIME\",le=\"10\"} 4\n"
            "fusion_wait_seconds_bucket{kind=\"TIME\",le=\"+Inf\"} 5\n"
            "fusion_wait_seconds_sum{kind=\"TIME\"} 21.65\n"
            "fusion_wait_seconds_count{kind=\"TIME\"} 5\n");
}

TEST(MetricsTest, LabelsAndHelpAreEscaped) {
  Metrics metrics;
  metrics.AddGauge("fusion_device_healthy", "One \\ two\nlines.", {"device"}).With({"a\"b\\c\nd"}).Set(1);
  EXPECT_THAT(metrics.Text(), HasSubstr("# HELP fusion_device_healthy One \\\\ two\\nlines.\n"));
  EXPECT_THAT(metrics.Text(), HasSubstr("{device=\"a\\\"b\\\\c\\nd\"} 1\n"));
}

TEST(MetricsTest, SpecialNumbers) {
  Metrics metrics;
  auto& value = metrics.AddGauge("fusion_value", "Value.", {"of"});
  value.With({"nan"}).Set(std::nan(""));
  value.With({"inf"}).Set(std::numeric_limits<double>::infinity());
  value.With({"large"}).Set(1763794760123456.0);
  EXPECT_THAT(metrics.Text(), HasSubstr("{of=\"nan\"} NaN\n"));
  EXPECT_THAT(metrics.Text(), HasSubstr("{of=\"inf\"} +Inf\n"));
  EXPECT_THAT(metrics.Text(), HasSubstr("{of=\"large\"} 1763794760123456\n"));
}

TEST(MetricsTest, TooManySeriesAreCountedTogether) {
  Metrics metrics;
  auto& calls = metrics.AddCounter("fusion_calls_total", "Calls.", {"who"});
  constexpr int kMore = 100, kMost = MetricFamily<Counter>::kMostSeries;
  for (int i = 0; i < kMost + kMore; ++i) calls.With({std::to_string(i)}).Add();
  EXPECT_THAT(metrics.Text(), HasSubstr("{who=\"other\"} " + std::to_string(kMore) + "\n"));
}

TEST(MetricsTest, CountsOfManyThreadsAreAllThere) {
  Metrics metrics;
  auto& calls = metrics.AddCounter("fusion_calls_total", "Calls.", {"method"});
  auto& seconds = metrics.AddHistogram("fusion_call_seconds", "Time.", {1});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i) {
        calls.With({std::to_string(t % 2)}).Add();
        seconds->Observe(i % 2 * 2.0);
        if (i % 100 == 0) metrics.Text();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(calls.With({"0"}).value(), 2000);
  EXPECT_EQ(calls.With({"1"}).value(), 2000);
  EXPECT_EQ(seconds->counts(), (std::vector<uint64_t>{2000, 2000}));
  EXPECT_EQ(seconds->sum(), 4000);
}

TEST(MetricsTest, CollectorsRunBeforeTheText) {
  Metrics metrics;
  auto& size = metrics.AddGauge("fusion_store_bytes", "Size.");
  int collections = 0;
  metrics.OnCollect([&] { size->Set(100 * ++collections); });
  EXPECT_THAT(metrics.Text(), HasSubstr("\nfusion_store_bytes 100\n"));
  EXPECT_THAT(metrics.Text(), HasSubstr("\nfusion_store_bytes 200\n"));
}

TEST(ProcessMetricsTest, SaysWhatThisProcessUses) {
  Metrics metrics;
  AddProcessMetrics("fusion-test", "1.2", &metrics);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("fusion_build_info{program=\"fusion-test\",version=\"1.2\"} 1\n"));
  for (const char* name : {"process_resident_memory_bytes", "process_virtual_memory_bytes",
                           "process_open_fds", "process_max_fds", "process_start_time_seconds"}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n") + name + " "));
    EXPECT_THAT(text, Not(HasSubstr(std::string("\n") + name + " 0\n")));
  }
}

}  // namespace
}  // namespace fusion
