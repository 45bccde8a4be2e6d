#include "server/metrics/server_metrics.h"

#include <gmock/gmock.h>

#include <boost/asio/thread_pool.hpp>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "db/store/sqlite_database.h"
#include "server/rpc/server.h"
#include "server/upkeep/backup.h"
#include "tests/integration/http_connection.h"
#include "tests/unit/dispatch/dispatch_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ServerMetricsTest : public DispatchTest {
 protected:
  // A build that one worker has.
  v1::Assignment Assigned() {
    const std::string job = NewJob();
    builds_.push_back(StartBuild(job, {HostBuild("key of " + job)}));
    return Take(Request("alpha"), 1).at(0);
  }
  void TearDown() override {
    dispatcher_->Stop();
    builds_.clear();
    DispatchTest::TearDown();
  }
  std::vector<BuildFuture> builds_;
};

// Without the lines about this process, which change by themselves.
std::string OfTheFarm(const std::string& text) {
  std::string kept;
  for (absl::string_view line : absl::StrSplit(text, '\n'))
    if (!absl::StrContains(line, "process_")) absl::StrAppend(&kept, line, "\n");
  return kept;
}

TEST_F(ServerMetricsTest, TasksAreCountedAsTheyAreStored) {
  ServerMetrics metrics;
  ASSERT_TRUE(metrics.Watch(*store_, *dispatcher_).ok());
  EXPECT_THAT(metrics.registry.Text(), HasSubstr("\nfusion_tasks_claimed_total{kind=\"BUILD\"} 0\n"));
  const v1::Assignment assignment = Assigned();
  std::string text = metrics.registry.Text();
  EXPECT_THAT(text, HasSubstr("\nfusion_tasks_claimed_total{kind=\"BUILD\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nfusion_tasks_running{kind=\"BUILD\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nfusion_task_queue_seconds_count{kind=\"BUILD\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nfusion_workers_connected 1\n"));
  EXPECT_THAT(text, HasSubstr("\nfusion_devices{health=\"ok\"} 1\n"));
  clock_.Advance(std::chrono::seconds(3));
  Call(Request("alpha", {Built(assignment, v1::OK, Upload("binary"))}));
  text = metrics.registry.Text();
  EXPECT_THAT(text, HasSubstr("\nfusion_tasks_ended_total{kind=\"BUILD\",outcome=\"DONE\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nfusion_task_run_seconds_sum{kind=\"BUILD\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("\nfusion_tasks_running{kind=\"BUILD\"} 0\n"));
  EXPECT_EQ(OfTheFarm(metrics.registry.Text()), OfTheFarm(text)) << "nothing is counted twice";
}

TEST_F(ServerMetricsTest, DamagedBlobsAreCounted) {
  ServerMetrics metrics;
  ASSERT_TRUE(metrics.Watch(*store_, *dispatcher_).ok());
  const std::string digest = Upload("binary");
  EXPECT_THAT(metrics.registry.Text(), HasSubstr("\nfusion_damaged_blobs_total 0\n"));
  {
    auto database =
        Database::Open(folder_ + "/fusion.db", Database::Mode::kReadWrite, std::chrono::seconds(5));
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE((*database)->Execute("UPDATE blobs SET data = x'616263ff'").ok());
  }
  EXPECT_TRUE(absl::IsDataLoss(store_->GetBlob(digest).status()));
  EXPECT_THAT(metrics.registry.Text(), HasSubstr("\nfusion_damaged_blobs_total 1\n"));
  EXPECT_THAT(metrics.registry.Text(), HasSubstr("\nfusion_rebuilt_blobs_total 0\n"));
  Upload("binary");
  EXPECT_THAT(metrics.registry.Text(), HasSubstr("\nfusion_rebuilt_blobs_total 1\n"));
  EXPECT_THAT(metrics.registry.Text(), HasSubstr("\nfusion_damaged_blobs_total 1\n"));
}

TEST_F(ServerMetricsTest, LostWorkersAreCounted) {
  ServerMetrics metrics;
  ASSERT_TRUE(metrics.Watch(*store_, *dispatcher_).ok());
  Assigned();
  dispatcher_->Stop();  // its timer would look for lost leases too
  clock_.Advance(std::chrono::seconds(60));
  ASSERT_EQ(store_->ExpireLeases(clock_.Now()).value().size(), 1u);
  const std::string text = metrics.registry.Text();
  EXPECT_THAT(text, HasSubstr("\nfusion_leases_expired_total 1\n"));
  EXPECT_THAT(text, HasSubstr("\nfusion_worker_lost_total 1\n"));
  EXPECT_THAT(text, HasSubstr("\nfusion_tasks_ended_total{kind=\"BUILD\",outcome=\"LEASE_EXPIRED\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nfusion_tasks_queued{kind=\"BUILD\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nfusion_workers_connected 0\n"));
}

TEST_F(ServerMetricsTest, WhatAnEarlierProcessDidIsNotCounted) {
  Assigned();
  ServerMetrics metrics;
  ASSERT_TRUE(metrics.Watch(*store_, *dispatcher_).ok());
  EXPECT_THAT(metrics.registry.Text(), HasSubstr("\nfusion_tasks_claimed_total{kind=\"BUILD\"} 0\n"));
  EXPECT_THAT(metrics.registry.Text(), HasSubstr("\nfusion_tasks_running{kind=\"BUILD\"} 1\n"));
}

TEST_F(ServerMetricsTest, DevicesOfWorkersAreCounted) {
  ServerMetrics metrics;
  ASSERT_TRUE(metrics.Watch(*store_, *dispatcher_).ok());
  Call(Request("alpha", {}, {HostDevice(), CudaDevice()}));
  EXPECT_THAT(metrics.registry.Text(), HasSubstr("\nfusion_devices{health=\"ok\"} 2\n"));
  EXPECT_THAT(metrics.registry.Text(), HasSubstr("\nfusion_devices{health=\"out\"} 0\n"));
}

TEST_F(ServerMetricsTest, BackupsOfOneSecondHaveNamesOfTheirOwn) {
  const auto first = BackUpStore(*store_, folder_, clock_.Now());
  const auto second = BackUpStore(*store_, folder_, clock_.Now());
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  EXPECT_THAT(first->path(), HasSubstr("/fusion-backup-19700101T001640Z.db"));
  EXPECT_THAT(second->path(), HasSubstr("/fusion-backup-19700101T001640Z-2.db"));
  EXPECT_GT(first->bytes(), 0);
  EXPECT_FALSE(BackUpStore(*store_, folder_ + "/none", clock_.Now()).ok());
}

TEST_F(ServerMetricsTest, AServerThatStopsIsNeitherHealthyNorReady) {
  ServerOptions options;
  options.data_directory = folder_ + "/server";
  options.metrics_address = "127.0.0.1:0";
  const auto server = Server::Start(options);
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string pages = (*server)->metrics_address();
  EXPECT_THAT(testing::HttpGet(pages, "/healthz"), HasSubstr("200 OK"));
  EXPECT_THAT(testing::HttpGet(pages, "/readyz"), HasSubstr("200 OK"));
  (*server)->Shutdown();
  EXPECT_THAT(testing::HttpGet(pages, "/healthz"), HasSubstr("the server is stopping\n"));
  EXPECT_THAT(testing::HttpGet(pages, "/healthz"), HasSubstr(" 503 "));
  EXPECT_THAT(testing::HttpGet(pages, "/readyz"), HasSubstr(" 503 "));
  EXPECT_THAT(testing::HttpGet(pages, "/metrics"), HasSubstr("\nfusion_jobs_submitted_total 0\n"));
}

}  // namespace
}  // namespace fusion
