// A runner of jobs on a database of its own, whose pipelines wait until they are told to go on.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/temporary_directory.h"
#include "db/store/store.h"
#include "server/dispatch/dispatcher.h"
#include "server/jobs/job_runner.h"
#include "server/upkeep/data_directory.h"
#include "tests/eventually.h"
#include "tests/unit/jobs/barrier.h"

namespace fusion {

// Pipelines that go on when they are told to.
class Steps {
 public:
  // Notes that the pipeline has begun, and waits.
  void Run(const std::string& name) {
    std::unique_lock lock(mutex_);
    begun_.push_back(name);
    changed_.notify_all();
    EXPECT_TRUE(
        changed_.wait_for(lock, std::chrono::seconds(60), [&] { return all_ || let_go_.contains(name); }));
  }
  void LetGo(const std::string& name) {
    std::lock_guard lock(mutex_);
    let_go_.insert(name);
    changed_.notify_all();
  }
  void LetAllGo() {
    std::lock_guard lock(mutex_);
    all_ = true;
    changed_.notify_all();
  }
  // Returns the pipelines that have begun, in order, when they are so many.
  std::vector<std::string> Begun(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(20), [&] { return begun_.size() >= count; });
    return begun_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> begun_;
  std::set<std::string> let_go_;
  bool all_ = false;
};

class JobRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::Create();
    ASSERT_TRUE(directory.ok());
    directory_ = *std::move(directory);
    auto store = OpenSqliteStore(DatabasePath(directory_->path()));
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    dispatcher_ = std::make_unique<Dispatcher>(*store_, pool_.get_executor(), clock_);
    ASSERT_TRUE(dispatcher_->Start().ok());
    options_.threads = 1;
    options_.pipeline = [this](const v1::SubmitRequest&,
                               const PipelineContext&) -> absl::StatusOr<v1::JobResult> {
      EXPECT_TRUE(barrier_.Wait());
      return v1::JobResult();
    };
  }
  void TearDown() override {
    barrier_.Open();
    steps_.LetAllGo();
    runner_.reset();
    dispatcher_.reset();
    pool_.join();
  }
  void StartRunner() {
    runner_ = std::make_unique<JobRunner>(*store_, *dispatcher_, searches_, nullptr, watchers_, options_);
  }
  absl::StatusOr<JobRecord> Submit(const std::string& user = "", double time_limit = 0,
                                   const std::string& request_id = "", const std::string& graph_hash = "") {
    v1::SubmitRequest request;
    request.set_request_id(request_id);
    request.set_time_limit_seconds(time_limit);
    v1::GraphSummary graph;
    graph.set_hash(graph_hash);
    return runner_->Submit(request, graph, user);
  }
  // Waits until the job has ended.
  JobRecord Ended(const std::string& job) {
    absl::StatusOr<JobRecord> record;
    EXPECT_TRUE(Eventually([&] {
      record = store_->GetJob(job);
      return !record.ok() || IsTerminal(record->state);
    })) << job
        << " does not end";
    EXPECT_TRUE(record.ok()) << record.status();
    return record.value_or(JobRecord());
  }
  // A thread of the runner takes note of the end of a job after the end is stored.
  absl::StatusOr<JobRecord> SubmitWhenThereIsRoom(const std::string& user = "") {
    absl::StatusOr<JobRecord> job;
    EXPECT_TRUE(Eventually([&] {
      job = Submit(user);
      return !absl::IsResourceExhausted(job.status());
    }));
    return job;
  }

  std::unique_ptr<TemporaryDirectory> directory_;
  std::unique_ptr<Store> store_;
  SystemClock clock_;
  JobWatchers watchers_;
  boost::asio::thread_pool pool_{1};
  std::unique_ptr<Dispatcher> dispatcher_;
  SearchPool searches_{SearchLimits()};
  Barrier barrier_;
  Steps steps_;
  JobRunnerOptions options_;
  std::unique_ptr<JobRunner> runner_;
};

}  // namespace fusion
