// Which candidates run again when they have failed, on which device, and what is said of them. Workers are played.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "server/service/job_stages.h"
#include "tests/example_source.h"
#include "tests/unit/dispatch/dispatch_fixture.h"

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class ConfirmTest : public DispatchTest {
 protected:
  void SetUp() override {
    DispatchTest::SetUp();
    auto checked = CheckSource(testing::ExampleSource("vadd"), *Catalog::BuiltIn());
    ASSERT_TRUE(checked.ok()) << checked.status();
    submission_ = *std::move(checked);
    // Programs without launches: nothing is run here.
    code_.unfused.emplace_back();
    code_.candidates.resize(1);
  }
  void TearDown() override {
    stop_ = true;
    for (std::thread& worker : workers_) worker.join();
    DispatchTest::TearDown();
  }
  // A worker that times on the device, where programs have the outcomes in turn, and then the last one again.
  void StartWorker(const v1::DeviceDescription& device, std::vector<v1::Outcome> outcomes) {
    // Known to the dispatcher before the job looks for it.
    Call(Request("worker of " + device.uuid(), {}, {device}));
    workers_.emplace_back([this, device, outcomes = std::move(outcomes)] {
      v1::SynchronizeRequest request = Request("worker of " + device.uuid(), {}, {device});
      request.set_wait_seconds(0.02);
      for (size_t next = 0; !stop_;) {
        const v1::SynchronizeResponse response = Call(request);
        request.clear_tasks();
        for (const v1::Assignment& assignment : response.assignments())
          *request.add_tasks() = Answer(assignment, outcomes[std::min(next++, outcomes.size() - 1)]);
      }
    });
  }
  v1::Candidate TimeOnce() {
    const std::string job = NewJob();
    const PipelineContext context{*store_, *dispatcher_, nullptr, job, CancellationToken(), nullptr, ""};
    v1::JobResult result;
    const auto timer = MakeCandidateTimer(submission_, device_, built_, context, &code_, &result);
    const absl::Status timed = timer->TimeRound({0});
    EXPECT_TRUE(timed.ok()) << timed;
    return code_.candidates[0].candidate;
  }
  std::vector<std::string> Ran(const std::string& device) {
    std::lock_guard lock(mutex_);
    return ran_[device];
  }

  const v1::DeviceDescription device_ = CudaDevice("GPU-1");

 private:
  v1::TaskReport Answer(const v1::Assignment& assignment, v1::Outcome outcome) {
    v1::TaskReport report;
    report.set_task(assignment.task());
    report.set_fence(assignment.fence());
    v1::TimeResult* result = report.mutable_time();
    result->mutable_unfused()->set_outcome(v1::OK);
    v1::ProgramMeasurement* measurement = result->add_programs();
    measurement->set_name(assignment.time().programs(0).name());
    measurement->set_outcome(outcome);
    if (outcome != v1::OK) measurement->set_message("illegal address");
    std::lock_guard lock(mutex_);
    ran_[assignment.time().device_uuid()].push_back(measurement->name());
    return report;
  }

  Submission submission_;
  GeneratedCode code_;
  BuiltCode built_;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::map<std::string, std::vector<std::string>> ran_;  // names of programs by device; guarded by mutex_
};

TEST_F(ConfirmTest, ACandidateThatSucceedsIsNotRunAgain) {
  StartWorker(device_, {v1::OK});
  EXPECT_EQ(TimeOnce().outcome(), v1::OK);
  EXPECT_THAT(Ran("GPU-1"), ElementsAre("candidate 1"));
}

TEST_F(ConfirmTest, AWrongResultIsNoFaultAndNotRunAgain) {
  StartWorker(device_, {v1::WRONG_RESULT, v1::OK});
  EXPECT_EQ(TimeOnce().outcome(), v1::WRONG_RESULT);
  EXPECT_THAT(Ran("GPU-1"), ElementsAre("candidate 1"));
}

TEST_F(ConfirmTest, WithOneDeviceAFaultIsConfirmedThere) {
  StartWorker(device_, {v1::FAULT});
  const v1::Candidate candidate = TimeOnce();
  EXPECT_EQ(candidate.outcome(), v1::FAULT);
  EXPECT_THAT(candidate.message(), HasSubstr("illegal address; the second time"));
  EXPECT_THAT(Ran("GPU-1"), ElementsAre("candidate 1", "candidate 1, again"));
}

TEST_F(ConfirmTest, ACandidateThatFailsOnceHasAnotherChance) {
  StartWorker(device_, {v1::TIMEOUT, v1::OK});
  const v1::Candidate candidate = TimeOnce();
  EXPECT_EQ(candidate.outcome(), v1::OK);
  EXPECT_THAT(candidate.message(), HasSubstr("failed before, not the second time: illegal address"));
}

TEST_F(ConfirmTest, AFaultOnTwoDevicesIsTheCandidates) {
  StartWorker(device_, {v1::FAULT, v1::OK});
  StartWorker(CudaDevice("GPU-2"), {v1::FAULT});
  const v1::Candidate candidate = TimeOnce();
  EXPECT_EQ(candidate.outcome(), v1::FAULT);
  EXPECT_THAT(candidate.message(), HasSubstr("again on another H200: illegal address"));
  EXPECT_THAT(Ran("GPU-1"), ElementsAre("candidate 1"));
  EXPECT_THAT(Ran("GPU-2"), ElementsAre("candidate 1, elsewhere"));
}

TEST_F(ConfirmTest, WhatSucceedsElsewhereIsDecidedByTheDeviceOfTheJob) {
  StartWorker(device_, {v1::FAULT});
  StartWorker(CudaDevice("GPU-2"), {v1::OK});
  const v1::Candidate candidate = TimeOnce();
  EXPECT_EQ(candidate.outcome(), v1::FAULT);
  EXPECT_THAT(candidate.message(), HasSubstr("the second time"));
  EXPECT_THAT(candidate.message(), Not(HasSubstr("another H200")));
  EXPECT_THAT(Ran("GPU-2"), ElementsAre("candidate 1, elsewhere"));
  EXPECT_THAT(Ran("GPU-1"), ElementsAre("candidate 1", "candidate 1, again"));
}

TEST_F(ConfirmTest, ADeviceOfAnotherKindConfirmsNothing) {
  StartWorker(device_, {v1::FAULT});
  StartWorker(CudaDevice("GPU-2", "sm_80"), {v1::OK});
  EXPECT_EQ(TimeOnce().outcome(), v1::FAULT);
  EXPECT_THAT(Ran("GPU-2"), ElementsAre());
}

}  // namespace
}  // namespace fusion
