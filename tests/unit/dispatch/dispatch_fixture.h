// A dispatcher over a store in a folder of its own, with a clock that tests turn, and workers played by the
// tests.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "db/store/store.h"
#include "server/dispatch/dispatcher.h"
#include "tests/eventually.h"

namespace fusion {

class ManualClock final : public Clock {
 public:
  Timestamp Now() const override { return Timestamp(std::chrono::microseconds(micros_.load())); }
  void Advance(std::chrono::microseconds by) { micros_ += by.count(); }

 private:
  std::atomic<int64_t> micros_{1'000'000'000};
};

inline v1::DeviceDescription HostDevice(const std::string& uuid = "CPU-1") {
  v1::DeviceDescription device;
  device.set_name("Ryzen");
  device.set_target(v1::HOST);
  device.set_arch("x86-64-v4");
  device.set_uuid(uuid);
  device.set_copy_bytes_per_second(2e10);
  return device;
}

inline v1::DeviceDescription CudaDevice(const std::string& uuid = "GPU-1",
                                        const std::string& arch = "sm_90") {
  v1::DeviceDescription device;
  device.set_name(arch == "sm_90" ? "H200" : "A100");
  device.set_target(v1::CUDA);
  device.set_arch(arch);
  device.set_uuid(uuid);
  device.set_copy_bytes_per_second(arch == "sm_90" ? 4e12 : 2e12);
  return device;
}

inline v1::BuildTask HostBuild(const std::string& key) {
  v1::BuildTask task;
  task.set_key(key);
  task.set_target(v1::HOST);
  task.set_arch("x86-64-v4");
  task.set_source("// " + key);
  return task;
}

inline v1::TimeTask Timing(const std::string& program) {
  v1::TimeTask task;
  task.mutable_session()->set_key("session");
  task.mutable_session()->mutable_unfused()->set_name("unfused");
  task.add_programs()->set_name(program);
  return task;
}

inline v1::TaskReport Running(const v1::Assignment& assignment) {
  v1::TaskReport report;
  report.set_task(assignment.task());
  report.set_fence(assignment.fence());
  report.set_running(true);
  return report;
}

inline v1::TaskReport Built(const v1::Assignment& assignment, v1::Outcome outcome,
                            const std::string& binary = "") {
  v1::TaskReport report;
  report.set_task(assignment.task());
  report.set_fence(assignment.fence());
  report.mutable_build()->set_outcome(outcome);
  report.mutable_build()->set_binary(binary);
  report.mutable_build()->set_log("log of " + assignment.task());
  return report;
}

inline v1::TaskReport Timed(const v1::Assignment& assignment, double seconds) {
  v1::TaskReport report;
  report.set_task(assignment.task());
  report.set_fence(assignment.fence());
  report.mutable_time()->add_programs()->mutable_cold()->set_median(seconds);
  return report;
}

inline v1::TaskReport Failed(const v1::Assignment& assignment, const std::string& why) {
  v1::TaskReport report;
  report.set_task(assignment.task());
  report.set_fence(assignment.fence());
  report.set_failure(why);
  return report;
}

class DispatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "fusion_dispatch_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    options_.expiry_period = std::chrono::milliseconds(2);
    options_.look_period = std::chrono::milliseconds(5);
    StartServer();
  }
  void TearDown() override {
    dispatcher_.reset();
    store_.reset();
    pool_.join();
    std::filesystem::remove_all(folder_);
  }

  // Starts a server process, ending the present one first.
  void StartServer() {
    dispatcher_.reset();
    store_.reset();
    absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore(folder_ + "/fusion.db");
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    dispatcher_ = std::make_unique<Dispatcher>(*store_, pool_.get_executor(), clock_, options_);
    ASSERT_TRUE(dispatcher_->Start().ok());
  }

  std::string NewJob() {
    absl::StatusOr<CreatedJob> created = store_->CreateJob(JobRecord{}, clock_.Now());
    EXPECT_TRUE(created.ok()) << created.status();
    return created.ok() ? created->job.id : "";
  }
  std::string Upload(const std::string& binary) {
    absl::StatusOr<std::string> digest = store_->PutBlob(binary, "", clock_.Now());
    EXPECT_TRUE(digest.ok()) << digest.status();
    return digest.value_or("");
  }

  // A worker's request with room for 8 builds and 1 timing, not held.
  v1::SynchronizeRequest Request(const std::string& worker, const std::vector<v1::TaskReport>& reports = {},
                                 const std::vector<v1::DeviceDescription>& devices = {HostDevice()}) {
    v1::SynchronizeRequest request;
    request.set_worker(worker);
    request.set_instance(worker + " process 1");
    for (const v1::DeviceDescription& device : devices) *request.add_devices() = device;
    for (const v1::TaskReport& report : reports) *request.add_tasks() = report;
    request.set_free_build_slots(8);
    request.set_free_time_slots(1);
    return request;
  }
  std::future<v1::SynchronizeResponse> Send(const v1::SynchronizeRequest& request) {
    auto promise = std::make_shared<std::promise<v1::SynchronizeResponse>>();
    std::future<v1::SynchronizeResponse> future = promise->get_future();
    dispatcher_->Synchronize(request,
                             [promise](v1::SynchronizeResponse response) { promise->set_value(response); });
    return future;
  }
  v1::SynchronizeResponse Call(const v1::SynchronizeRequest& request) { return Send(request).get(); }
  // Calls, held, until there are so many assignments.
  std::vector<v1::Assignment> Take(v1::SynchronizeRequest request, int count) {
    std::vector<v1::Assignment> assignments;
    request.set_wait_seconds(10);
    while (static_cast<int>(assignments.size()) < count) {
      v1::SynchronizeResponse response = Call(request);
      for (const v1::Assignment& assignment : response.assignments()) {
        assignments.push_back(assignment);
        *request.add_tasks() = Running(assignment);
      }
      if (HasFatalFailure()) break;
    }
    return assignments;
  }

  // A worker that answers all that it is given with such reports, until it is to stop.
  void Work(v1::SynchronizeRequest request,
            const std::function<v1::TaskReport(const v1::Assignment&)>& report_of,
            const std::atomic<bool>& stop) {
    request.set_wait_seconds(0.02);
    while (!stop) {
      const v1::SynchronizeResponse response = Call(request);
      request.clear_tasks();
      for (const v1::Assignment& assignment : response.assignments())
        *request.add_tasks() = report_of(assignment);
    }
  }

  void AwaitLiveTasks(size_t count) {
    EXPECT_TRUE(Eventually([&] { return store_->LiveTasks()->size() >= count; }));
  }

  using BuildFuture = std::future<absl::StatusOr<std::vector<BuildOutcome>>>;
  BuildFuture StartBuild(const std::string& job, const std::vector<v1::BuildTask>& tasks,
                         CancellationToken token = CancellationToken()) {
    return std::async(std::launch::async,
                      [this, job, tasks, token] { return dispatcher_->Build(job, tasks, token); });
  }

  std::string folder_;
  ManualClock clock_;
  DispatcherOptions options_;
  boost::asio::thread_pool pool_{2};
  std::unique_ptr<Store> store_;
  std::unique_ptr<Dispatcher> dispatcher_;
};

}  // namespace fusion
