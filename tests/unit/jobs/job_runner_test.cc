// Which jobs are taken and which are refused, and what becomes of those that wait for a thread.
#include "server/jobs/job_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/rpc/status_conversion.h"
#include "tests/eventually.h"
#include "tests/unit/jobs/job_runner_fixture.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

// Jobs for a device that is not there keep nobody from those that are; when it comes, they go on as places
// become free.
TEST_F(JobRunnerTest, JobsThatWaitForADeviceLeaveTheirPlaces) {
  Barrier device, place_taken;
  std::atomic<int> running = 0, most_running = 0, waiting = 0;
  options_.pipeline = [&](const v1::SubmitRequest& request,
                          const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    if (absl::StartsWith(request.request_id(), "waits")) {
      context.waits_for_device(true);
      ++waiting;
      EXPECT_TRUE(device.Wait());
      --waiting;
      context.waits_for_device(false);
    }
    most_running = std::max(most_running.load(), ++running);
    if (request.request_id() == "long") {
      place_taken.Open();
      EXPECT_TRUE(barrier_.Wait());
    }
    --running;
    return v1::JobResult();
  };
  StartRunner();
  std::vector<std::string> patient;
  for (int i = 0; i < 5; ++i) patient.push_back(Submit("", 0, absl::StrCat("waits ", i))->id);
  const absl::StatusOr<JobRecord> other = Submit("", 0, "other");
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(Ended(other->id).state, JobState::kSucceeded);
  EXPECT_TRUE(Eventually([&] { return waiting == 5; }));

  const absl::StatusOr<JobRecord> long_one = Submit("", 0, "long");
  ASSERT_TRUE(place_taken.Wait());
  device.Open();
  EXPECT_TRUE(Eventually([&] { return waiting == 0; })) << "they come back, to no place";
  for (const std::string& job : patient) EXPECT_EQ(store_->GetJob(job)->state, JobState::kRunning);
  barrier_.Open();
  for (const std::string& job : patient) EXPECT_EQ(Ended(job).state, JobState::kSucceeded);
  EXPECT_EQ(Ended(long_one->id).state, JobState::kSucceeded);
  EXPECT_EQ(most_running, 1);
}

TEST(JobRunnerOptionsTest, JobsOfManyDevicesRunAtOnce) {
  const int processors = static_cast<int>(std::thread::hardware_concurrency());
  EXPECT_GE(JobRunnerOptions().threads, std::max(8, std::min(processors, 256)));
}

TEST_F(JobRunnerTest, AUserWithManyJobsKeepsNobodyFromAPlace) {
  options_.threads = 2;
  options_.pipeline = [this](const v1::SubmitRequest& request,
                             const PipelineContext&) -> absl::StatusOr<v1::JobResult> {
    steps_.Run(request.request_id());
    return v1::JobResult();
  };
  StartRunner();
  for (const char* job : {"a1", "a2"}) ASSERT_TRUE(Submit("ada", 0, job).ok());
  ASSERT_THAT(steps_.Begun(2), UnorderedElementsAre("a1", "a2"));
  for (const char* job : {"a3", "a4"}) ASSERT_TRUE(Submit("ada", 0, job).ok());
  const absl::StatusOr<JobRecord> other = Submit("ben", 0, "b1");
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_THAT(steps_.Begun(3), SizeIs(3));
  EXPECT_EQ(steps_.Begun(3)[2], "b1") << "none of ada's has ended";
  steps_.LetGo("b1");
  EXPECT_EQ(Ended(other->id).state, JobState::kSucceeded);
  const absl::StatusOr<JobRecord> next = Submit("cat", 0, "c1");
  ASSERT_TRUE(next.ok()) << next.status();
  ASSERT_THAT(steps_.Begun(4), SizeIs(4));
  EXPECT_EQ(steps_.Begun(4)[3], "c1") << "the place is kept for whoever comes next";
  steps_.LetGo("c1");
  EXPECT_EQ(Ended(next->id).state, JobState::kSucceeded);
  steps_.LetGo("a2");
  ASSERT_THAT(steps_.Begun(5), SizeIs(5));
  EXPECT_EQ(steps_.Begun(5)[4], "a3");
}

TEST_F(JobRunnerTest, ThePlaceThatIsKeptGoesFromOneIdleUserToTheNext) {
  options_.pipeline = [this](const v1::SubmitRequest& request,
                             const PipelineContext&) -> absl::StatusOr<v1::JobResult> {
    steps_.Run(request.request_id());
    return v1::JobResult();
  };
  StartRunner();
  ASSERT_TRUE(Submit("ada", 0, "a1").ok());
  ASSERT_THAT(steps_.Begun(1), ElementsAre("a1"));
  ASSERT_TRUE(Submit("ada", 0, "a2").ok());
  ASSERT_TRUE(Submit("ben", 0, "b1").ok());
  ASSERT_THAT(steps_.Begun(2), ElementsAre("a1", "b1"));
  const absl::StatusOr<JobRecord> last_of_ben = Submit("ben", 0, "b2");
  ASSERT_TRUE(last_of_ben.ok()) << last_of_ben.status();
  ASSERT_TRUE(Submit("cat", 0, "c1").ok());
  steps_.LetGo("b1");
  ASSERT_THAT(steps_.Begun(3), ElementsAre("a1", "b1", "c1")) << "one place is kept, not one for each";
  steps_.LetGo("c1");
  ASSERT_THAT(steps_.Begun(4), ElementsAre("a1", "b1", "c1", "b2"));
  steps_.LetGo("b2");
  EXPECT_EQ(Ended(last_of_ben->id).state, JobState::kSucceeded);
  ASSERT_TRUE(Submit("dan", 0, "d1").ok());
  ASSERT_THAT(steps_.Begun(5), ElementsAre("a1", "b1", "c1", "b2", "d1")) << "ada has one running";
  steps_.LetGo("a1");
  EXPECT_THAT(steps_.Begun(6), ElementsAre("a1", "b1", "c1", "b2", "d1", "a2"));
}

// A job, "patient", waits for a device, and comes back; all others run until they are let go, as it does
// then.
class PatientJobTest : public JobRunnerTest {
 protected:
  void SetUp() override {
    JobRunnerTest::SetUp();
    options_.pipeline = [this](const v1::SubmitRequest& request,
                               const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
      if (request.request_id() == "patient") {
        context.waits_for_device(true);
        waits_.Open();
        EXPECT_TRUE(device_.Wait());
        returns_.Open();
        context.waits_for_device(false);
        if (context.cancellation.cancelled()) {
          cancelled_.Open();
          return absl::CancelledError("cancelled");
        }
      }
      steps_.Run(request.request_id());
      return v1::JobResult();
    };
    StartRunner();
    const absl::StatusOr<JobRecord> patient = Submit("ada", 0, "patient");
    ASSERT_TRUE(patient.ok()) << patient.status();
    patient_ = patient->id;
    ASSERT_TRUE(waits_.Wait());
    // A place would be hers if she had none.
    ASSERT_TRUE(Submit("ada", 0, "a1").ok());
    ASSERT_THAT(steps_.Begun(1), ElementsAre("a1"));
    device_.Open();
    ASSERT_TRUE(returns_.Wait());  // to no place
  }
  void TearDown() override {
    device_.Open();
    JobRunnerTest::TearDown();
  }
  Barrier waits_, device_, returns_, cancelled_;
  std::string patient_;
};

// A job of a user with many that comes back, behind another of his: the place that is kept is others' all the
// same.
TEST_F(PatientJobTest, LeavesTheKeptPlaceToOthersWhenItComesBack) {
  ASSERT_TRUE(Submit("ben", 0, "b1").ok());
  ASSERT_THAT(steps_.Begun(2), ElementsAre("a1", "b1"));
  // Ben's goes on, and keeps it from nothing.
  steps_.LetGo("a1");
  EXPECT_THAT(steps_.Begun(3), ElementsAre("a1", "b1", "patient"));
  // Those who wait in the line while it waits for a place are not forgotten behind it.
  ASSERT_TRUE(Submit("cat", 0, "c1").ok());
  ASSERT_TRUE(Submit("dan", 0, "d1").ok());
  for (const char* job : {"b1", "patient", "c1"}) steps_.LetGo(job);
  EXPECT_THAT(steps_.Begun(5), UnorderedElementsAre("a1", "b1", "patient", "c1", "d1"));
}

TEST_F(PatientJobTest, EndsAtOnceWhenItIsCancelledWhileItComesBack) {
  ASSERT_TRUE(runner_->Cancel(patient_).ok());
  EXPECT_TRUE(cancelled_.Wait()) << "a1 has the only place";
  EXPECT_THAT(steps_.Begun(1), ElementsAre("a1"));
}

// Whatever has become of a job, its device is the next one's.
TEST_F(JobRunnerTest, AJobLeavesItsDeviceHoweverItEnds) {
  v1::SynchronizeRequest worker;
  worker.set_worker("w");
  worker.set_instance("process 1");
  for (const char* uuid : {"GPU-1", "GPU-2"}) {
    v1::DeviceDescription* device = worker.add_devices();
    device->set_target(v1::CUDA);
    device->set_name("H200");
    device->set_uuid(uuid);
  }
  options_.threads = 2;
  options_.pipeline = [&](const v1::SubmitRequest& request,
                          const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    // It is there, however long the test takes.
    dispatcher_->Synchronize(worker, [](v1::SynchronizeResponse) {});
    const auto device = context.dispatcher.ChooseDevice(v1::CUDA, "", std::chrono::milliseconds(0),
                                                        context.cancellation, context.job);
    if (!device.ok()) return device.status();
    const std::string& name = request.request_id();
    steps_.Run(absl::StrCat(name, " on ", device->uuid()));
    if (name == "failing") return absl::FailedPreconditionError("nothing could be measured");
    if (name == "throwing") throw std::runtime_error("a mistake");
    if (name == "cancelled") return absl::CancelledError("cancelled");
    return v1::JobResult();
  };
  StartRunner();
  const absl::StatusOr<JobRecord> staying = Submit("", 0, "staying");
  ASSERT_TRUE(staying.ok()) << staying.status();
  ASSERT_THAT(steps_.Begun(1), ElementsAre("staying on GPU-1"));
  size_t begun = 1;
  for (const char* name : {"succeeding", "failing", "throwing", "cancelled", "last"}) {
    const absl::StatusOr<JobRecord> job = Submit("", 0, name);
    ASSERT_TRUE(job.ok()) << job.status();
    ++begun;
    ASSERT_THAT(steps_.Begun(begun), SizeIs(begun));
    EXPECT_EQ(steps_.Begun(begun).back(), absl::StrCat(name, " on GPU-2"));
    if (absl::string_view(name) == "cancelled") {
      EXPECT_TRUE(runner_->Cancel(job->id).ok());
    }
    steps_.LetGo(steps_.Begun(begun).back());
    Ended(job->id);
  }
  steps_.LetAllGo();
  EXPECT_EQ(Ended(staying->id).state, JobState::kSucceeded);
  runner_.reset();
}

TEST_F(JobRunnerTest, StoppingEndsTheWaitForAPlace) {
  Barrier device, began;
  options_.pipeline = [&](const v1::SubmitRequest& request,
                          const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    if (request.request_id() == "waits") {
      context.waits_for_device(true);
      EXPECT_TRUE(device.Wait());
      context.waits_for_device(false);
    } else {
      began.Open();
      EXPECT_TRUE(Eventually([&] { return context.cancellation.cancelled(); }));
    }
    return absl::CancelledError("stopped");
  };
  StartRunner();
  const std::string patient = Submit("", 0, "waits")->id;
  ASSERT_TRUE(Submit("", 0, "long").ok());
  ASSERT_TRUE(began.Wait());
  device.Open();
  runner_->Stop();
  EXPECT_EQ(store_->GetJob(patient)->state, JobState::kRunning) << "goes on after a restart";
}

TEST_F(JobRunnerTest, RefusesWhatIsTooMuchAndSaysWhenToTryAgain) {
  options_.most_jobs = 3;
  options_.most_jobs_of_user = 2;
  StartRunner();
  const absl::StatusOr<JobRecord> first = Submit("ada", 0, "first");
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(Submit("ada").ok());
  const absl::Status of_user = Submit("ada").status();
  EXPECT_TRUE(absl::IsResourceExhausted(of_user)) << of_user;
  EXPECT_THAT(std::string(of_user.message()), HasSubstr("you have 2 unfinished jobs"));
  EXPECT_EQ(RetrySeconds(of_user), 5);

  ASSERT_TRUE(Submit("ben").ok()) << "another user has room";
  const absl::Status of_server = Submit("ben").status();
  EXPECT_TRUE(absl::IsResourceExhausted(of_server)) << of_server;
  EXPECT_THAT(std::string(of_server.message()), HasSubstr("the server has 3 unfinished jobs"));
  EXPECT_EQ(RetrySeconds(of_server), 5);
  EXPECT_EQ(store_->UnfinishedJobs()->size(), 3u) << "what is refused is not stored";

  const absl::StatusOr<JobRecord> again = Submit("ada", 0, "first");
  ASSERT_TRUE(again.ok()) << "it was accepted before: " << again.status();
  EXPECT_EQ(again->id, first->id);

  barrier_.Open();
  EXPECT_EQ(Ended(first->id).state, JobState::kSucceeded);
  EXPECT_TRUE(SubmitWhenThereIsRoom("ada").ok());
}

TEST_F(JobRunnerTest, ARequestIdOfAnotherGraphIsAnError) {
  options_.most_jobs = 2;
  StartRunner();
  const absl::StatusOr<JobRecord> first = Submit("ada", 0, "id", "one graph");
  ASSERT_TRUE(first.ok()) << first.status();
  for (const bool full : {false, true}) {
    const absl::Status other = Submit("ada", 0, "id", "another graph").status();
    EXPECT_TRUE(absl::IsAlreadyExists(other)) << other;
    EXPECT_THAT(std::string(other.message()), AllOf(HasSubstr(first->id), HasSubstr("of another graph")));
    EXPECT_EQ(Submit("ada", 0, "id", "one graph")->id, first->id);
    if (!full) {
      ASSERT_TRUE(Submit("ben", 0, "id", "another graph").ok()) << "ids are a user's own";
    }
  }
  EXPECT_EQ(store_->UnfinishedJobs()->size(), 2u);
}

TEST_F(JobRunnerTest, ARequestIdOfOtherSizesOrOptionsIsAnError) {
  options_.most_jobs = 1000;
  StartRunner();
  v1::GraphSummary graph;
  graph.set_hash("a graph");
  (*graph.mutable_size_values())["n"] = 7;
  (*graph.mutable_size_values())["m"] = 8;
  v1::SubmitRequest request;
  request.set_request_id("id");
  request.set_candidates(5);
  request.set_priority(1);
  const absl::StatusOr<JobRecord> first = runner_->Submit(request, graph, "ada");
  ASSERT_TRUE(first.ok()) << first.status();
  v1::SubmitRequest again = request;
  // Neither how it is written nor what limits it decides what comes of it.
  again.mutable_source()->set_fuse("the same graph, written otherwise");
  again.set_priority(2);
  again.set_time_limit_seconds(60);
  again.mutable_limits()->set_queue_seconds(60);
  EXPECT_EQ(runner_->Submit(again, graph, "ada")->id, first->id);

  const auto refused = [&](const v1::SubmitRequest& other, const v1::GraphSummary& of) {
    const absl::Status status = runner_->Submit(other, of, "ada").status();
    EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(first->id));
    return std::string(status.message());
  };
  v1::GraphSummary larger = graph;
  (*larger.mutable_size_values())["n"] = 70;
  EXPECT_THAT(refused(request, larger), HasSubstr("for other sizes"));
  v1::SubmitRequest other = request;
  other.set_target(v1::HOST);
  EXPECT_THAT(refused(other, graph), HasSubstr("for another target"));
  other = request;
  other.set_candidates(6);
  EXPECT_THAT(refused(other, graph), HasSubstr("with other options: modified: candidates: 5 -> 6"));
  other = request;
  other.mutable_limits()->set_fusions(500);
  EXPECT_THAT(refused(other, graph), HasSubstr("with other options: added: limits"));
  other = request;
  other.set_cache(v1::WARM);
  EXPECT_THAT(refused(other, graph), HasSubstr("cache"));
  other = request;
  other.mutable_hints()->add_apart()->add_values("x");
  EXPECT_THAT(refused(other, graph), HasSubstr("hints"));
  EXPECT_EQ(store_->UnfinishedJobs()->size(), 1u);
}

TEST_F(JobRunnerTest, AWaitingJobWhoseTimeLimitEndsTakesNoRoom) {
  options_.most_jobs = 2;
  StartRunner();
  ASSERT_TRUE(Submit().ok());  // has the only thread
  const absl::StatusOr<JobRecord> limited = Submit("", 0.05);
  ASSERT_TRUE(limited.ok()) << limited.status();
  const JobRecord ended = Ended(limited->id);
  EXPECT_EQ(ended.state, JobState::kFailed);
  google::rpc::Status error;
  ASSERT_TRUE(error.ParseFromString(ended.error));
  EXPECT_TRUE(absl::IsDeadlineExceeded(FromRpcStatus(error))) << error.message();
  EXPECT_TRUE(SubmitWhenThereIsRoom().ok()) << "the first job still runs";
}

TEST_F(JobRunnerTest, WhatAJobWaitsForIsKnownWhileItWaits) {
  options_.pipeline = [this](const v1::SubmitRequest&,
                             const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    context.waits_for("no worker with a cuda device is connected", std::chrono::seconds(30));
    steps_.Run("waits");
    context.waits_for("", std::chrono::milliseconds(0));
    steps_.Run("has it");
    return v1::JobResult();
  };
  StartRunner();
  const absl::StatusOr<JobRecord> job = Submit();
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_THAT(steps_.Begun(1), SizeIs(1));
  EXPECT_THAT(runner_->WaitsFor(job->id),
              ::testing::MatchesRegex("no worker with a cuda device is connected; the job fails in "
                                      "[0-9]+ s unless one comes"));
  steps_.LetGo("waits");
  ASSERT_THAT(steps_.Begun(2), SizeIs(2));
  EXPECT_EQ(runner_->WaitsFor(job->id), "");
  EXPECT_EQ(runner_->WaitsFor("jobs/unknown"), "");
}

// The clock was an hour ahead, or behind, when the jobs were submitted, or has been set since.
TEST_F(JobRunnerTest, ATimeLimitOverARestartIsWhatIsLeftOfItWhateverTheClockSays) {
  using std::chrono::hours;
  v1::SubmitRequest request;
  JobRecord patient, late;
  request.set_time_limit_seconds(3000);
  patient.request = request.SerializeAsString();
  patient.id = "jobs/patient";
  request.set_time_limit_seconds(20);
  late.request = request.SerializeAsString();
  late.id = "jobs/late";
  ASSERT_TRUE(store_->CreateJob(patient, TimeOfDay() - hours(1)).ok());
  ASSERT_TRUE(store_->CreateJob(late, TimeOfDay() + hours(1)).ok());
  ASSERT_TRUE(store_
                  ->PutTimesUsed(
                      {{patient.id, std::chrono::seconds(10)}, {late.id, std::chrono::milliseconds(19950)}})
                  .ok());
  options_.pipeline = [this](const v1::SubmitRequest&,
                             const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    EXPECT_TRUE(barrier_.Wait());
    if (context.cancellation.cancelled()) return absl::CancelledError("its time limit ended");
    return v1::JobResult();
  };
  StartRunner();  // with one thread, which the patient one has
  ASSERT_TRUE(runner_->ResumeAll().ok());
  const JobRecord ended = Ended(late.id);
  EXPECT_EQ(ended.state, JobState::kFailed) << "it had 50 ms left";
  barrier_.Open();
  EXPECT_EQ(Ended(patient.id).state, JobState::kSucceeded) << "it had most of its time left";
}

TEST_F(JobRunnerTest, WhatAJobHasUsedOfItsTimeLimitIsKeptWhileItRunsAndWhenTheServerStops) {
  options_.time_used_period = std::chrono::milliseconds(500);
  StartRunner();
  const absl::StatusOr<JobRecord> limited = Submit("", 3600), unlimited = Submit();
  ASSERT_TRUE(limited.ok() && unlimited.ok());
  std::chrono::microseconds used{0};
  EXPECT_TRUE(Eventually([&] {
    used = store_->TimeUsed(limited->id).value();
    return used.count() > 0;
  }));
  EXPECT_EQ(store_->TimeUsed(unlimited->id)->count(), 0);
  std::thread stop([this] { runner_->Stop(); });
  // The job ends only then: one that has ended before has no time that could be kept.
  EXPECT_TRUE(Eventually([&] { return store_->TimeUsed(limited->id).value() > used; }));
  barrier_.Open();
  stop.join();
}

TEST_F(JobRunnerTest, ACancelledJobThatWaitedTakesNoRoomAndItsTimeLimitEndsNothing) {
  options_.most_jobs = 2;
  StartRunner();
  ASSERT_TRUE(Submit().ok());
  const absl::StatusOr<JobRecord> limited = Submit("", 3600);
  ASSERT_TRUE(limited.ok()) << limited.status();
  EXPECT_EQ(runner_->Cancel(limited->id)->state, JobState::kCancelled);
  EXPECT_TRUE(Submit().ok());
  EXPECT_EQ(store_->GetJob(limited->id)->state, JobState::kCancelled);
}

// A job that goes on after a restart plans with what was learned meanwhile, and may want other timings than
// before.
TEST_F(JobRunnerTest, TasksThatAJobNoLongerWantsAreCancelledWithItsEnd) {
  options_.pipeline = [](const v1::SubmitRequest&,
                         const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    TaskSpec spec{.key = "timing", .kind = TaskKind::kTime, .requirements = {.target = "CUDA"}};
    EXPECT_TRUE(context.dispatcher.Enqueue(context.job, {spec}).ok());
    return v1::JobResult();
  };
  StartRunner();
  const absl::StatusOr<JobRecord> job = Submit();
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_EQ(Ended(job->id).state, JobState::kSucceeded);
  runner_.reset();  // its threads have ended
  const absl::StatusOr<JobTraceRecord> trace = store_->JobTrace(job->id);
  ASSERT_TRUE(trace.ok()) << trace.status();
  ASSERT_EQ(trace->tasks.size(), 1u);
  EXPECT_EQ(trace->tasks[0].state, TaskState::kCancelled);
}

}  // namespace
}  // namespace fusion
