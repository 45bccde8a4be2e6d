#include "worker/agent/simulated_workplace.h"

#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <future>
#include <map>
#include <mutex>

#include "base/sha256.h"

namespace fusion {
namespace {

// Takes what workers build.
class BlobServer : public v1::WorkerService::Service {
 public:
  grpc::Status WriteBlob(grpc::ServerContext*, grpc::ServerReader<v1::Chunk>* reader,
                         v1::WriteBlobResponse* response) override {
    std::string content;
    for (v1::Chunk chunk; reader->Read(&chunk);) content += chunk.data();
    const std::string digest = "sha256:" + Sha256Hex(content);
    response->set_digest(digest);
    std::lock_guard lock(mutex_);
    blobs_[digest] = content;
    return grpc::Status::OK;
  }
  bool Has(const std::string& digest) {
    std::lock_guard lock(mutex_);
    return blobs_.contains(digest);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> blobs_;  // guarded by mutex_
};

class SimulatedWorkplaceTest : public ::testing::Test {
 protected:
  SimulatedWorkplaceTest() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    blobs_ = std::make_unique<BlobTransfer>(server_->InProcessChannel(grpc::ChannelArguments()), 1 << 20);
    options_.build_seconds = options_.time_seconds = 0;
  }
  ~SimulatedWorkplaceTest() override {
    workplace_.reset();
    server_->Shutdown();
  }
  SimulatedWorkplace& Open() {
    workplace_ = std::make_unique<SimulatedWorkplace>(options_, blobs_.get());
    return *workplace_;
  }
  std::future<v1::TaskReport> Start(const v1::Assignment& assignment, std::stop_token stop = {}) {
    auto promise = std::make_shared<std::promise<v1::TaskReport>>();
    std::future<v1::TaskReport> report = promise->get_future();
    workplace_->Start(assignment, stop,
                      [promise](v1::TaskReport done) { promise->set_value(std::move(done)); });
    return report;
  }
  // A timing of the unfused program and of two others, of one and of three kernels.
  v1::Assignment Timing() {
    v1::Assignment assignment;
    assignment.set_task("tasks/1");
    assignment.set_fence(7);
    v1::TimeTask* task = assignment.mutable_time();
    task->set_device_uuid(workplace_->devices()[0].uuid());
    task->mutable_session()->mutable_unfused()->set_name("unfused");
    task->mutable_session()->mutable_unfused()->add_launches()->set_kernel("u");
    v1::Program* small = task->add_programs();
    small->set_name("small");
    small->add_launches()->set_kernel("k");
    v1::Program* large = task->add_programs();
    large->set_name("large");
    for (const char* kernel : {"k", "l", "m"}) large->add_launches()->set_kernel(kernel);
    return assignment;
  }

  BlobServer service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<BlobTransfer> blobs_;
  SimulationOptions options_;
  std::unique_ptr<SimulatedWorkplace> workplace_;
};

TEST_F(SimulatedWorkplaceTest, OffersItsDevicesAndSaysThatTheyAreSimulated) {
  options_.devices = 3;
  options_.host = "alpha";
  options_.build_slots = 2;
  Open();
  ASSERT_EQ(workplace_->devices().size(), 3u);
  EXPECT_EQ(workplace_->devices()[2].uuid(), "SIMULATED-alpha-2");
  EXPECT_EQ(workplace_->devices()[0].name(), workplace_->devices()[1].name());
  EXPECT_EQ(workplace_->build_slots(), 2);
  ASSERT_EQ(workplace_->builds().size(), 1u);
  EXPECT_EQ(workplace_->builds()[0].target(), v1::CUDA);
  ASSERT_EQ(workplace_->notes().size(), 1u);
  EXPECT_NE(workplace_->notes()[0].find("no result is verified"), std::string::npos);
}

TEST_F(SimulatedWorkplaceTest, BuildsAreStoredOnTheServerAndFollowFromTheirKeys) {
  Open();
  v1::Assignment assignment;
  assignment.set_task("tasks/1");
  assignment.set_fence(3);
  assignment.mutable_build()->set_key("a");
  const v1::TaskReport first = Start(assignment).get(), again = Start(assignment).get();
  assignment.mutable_build()->set_key("b");
  const v1::TaskReport other = Start(assignment).get();
  EXPECT_EQ(first.task(), "tasks/1");
  EXPECT_EQ(first.fence(), 3);
  EXPECT_EQ(first.build().outcome(), v1::OK);
  EXPECT_TRUE(service_.Has(first.build().binary()));
  EXPECT_EQ(again.build().binary(), first.build().binary());
  EXPECT_NE(other.build().binary(), first.build().binary());
}

TEST_F(SimulatedWorkplaceTest, TimesFollowFromTheProgramsAlone) {
  Open();
  const v1::TaskReport first = Start(Timing()).get(), again = Start(Timing()).get();
  ASSERT_EQ(first.time().programs_size(), 2);
  EXPECT_EQ(first.time().unfused().outcome(), v1::OK);
  EXPECT_EQ(first.time().programs(0).outcome(), v1::OK);
  EXPECT_EQ(first.time().programs(0).name(), "small");
  EXPECT_GT(first.time().programs(1).cold().median(), first.time().programs(0).cold().median());
  EXPECT_EQ(first.time().SerializeAsString(), again.time().SerializeAsString());
  const v1::ProgramMeasurement& large = first.time().programs(1);
  EXPECT_DOUBLE_EQ(large.paired_speedup().median(),
                   first.time().unfused().cold().median() / large.cold().median());
}

TEST_F(SimulatedWorkplaceTest, FaultsAreOfProgramsAndFailuresOfTheWorker) {
  options_.faults = 1;
  Open();
  const v1::TaskReport faulted = Start(Timing()).get();
  EXPECT_EQ(faulted.time().programs(1).outcome(), v1::FAULT);
  EXPECT_TRUE(faulted.failure().empty());
  options_.faults = 0;
  options_.failures = 1;
  Open();
  EXPECT_EQ(Start(Timing()).get().failure(), "a simulated failure of the worker");
}

TEST_F(SimulatedWorkplaceTest, CheatsAreWrongOrTooFast) {
  options_.wrong = 1;
  Open();
  const v1::TaskReport wrong = Start(Timing()).get();
  EXPECT_EQ(wrong.time().programs(0).outcome(), v1::WRONG_RESULT);
  EXPECT_EQ(wrong.time().programs(0).cold().median(), 0) << "its times count for nothing";
  options_.wrong = 0;
  Open();
  const v1::TaskReport honest = Start(Timing()).get();
  EXPECT_FALSE(honest.time().programs(0).below_floor());
  options_.cheats = 1;
  Open();
  const v1::TaskReport fast = Start(Timing()).get();
  EXPECT_EQ(fast.time().programs(0).outcome(), v1::OK);
  EXPECT_TRUE(fast.time().programs(0).below_floor());
  EXPECT_LT(fast.time().programs(0).cold().median(), 0.01 * honest.time().programs(0).cold().median());
}

TEST_F(SimulatedWorkplaceTest, DevicesThatDoNotStartAreOutFromTheBeginning) {
  options_.devices = 3;
  options_.out = 2;
  options_.sick_seconds = 3600;
  Open();
  ASSERT_EQ(workplace_->devices().size(), 3u);
  const std::vector<v1::DeviceProblem> problems = workplace_->problems();
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].device_uuid(), workplace_->devices()[1].uuid());
  EXPECT_EQ(problems[1].device_uuid(), workplace_->devices()[2].uuid());
  EXPECT_EQ(problems[0].reason(), "a simulated device that does not start");
  EXPECT_TRUE(Start(Timing()).get().has_time()) << "the first one works";
}

TEST_F(SimulatedWorkplaceTest, WhatHangsGivesNoReportUntilTheWorkplaceEnds) {
  options_.hangs = 1;
  Open();
  std::stop_source stop;
  std::future<v1::TaskReport> stopped = Start(Timing(), stop.get_token());
  EXPECT_EQ(stopped.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  stop.request_stop();
  // Nor then: the server has taken the task away.
  EXPECT_THROW(stopped.get(), std::future_error);
  std::future<v1::TaskReport> ended = Start(Timing());
  workplace_.reset();
  EXPECT_THROW(ended.get(), std::future_error);
}

TEST_F(SimulatedWorkplaceTest, AStoppedTaskIsAFailure) {
  options_.time_seconds = options_.build_seconds = 3600;
  Open();
  std::stop_source stop;
  std::future<v1::TaskReport> timing = Start(Timing(), stop.get_token());
  v1::Assignment build;
  build.mutable_build()->set_key("a");
  std::future<v1::TaskReport> built = Start(build, stop.get_token());
  stop.request_stop();
  EXPECT_EQ(timing.get().failure(), "stopped");
  EXPECT_EQ(built.get().failure(), "stopped");
}

TEST_F(SimulatedWorkplaceTest, ASickDeviceIsOutForAWhile) {
  options_.sick_devices = 1;
  options_.sick_seconds = 0.2;
  SimulatedWorkplace& workplace = Open();
  std::promise<void> out, back;
  int changes = 0;
  workplace.OnChange([&] {
    if (++changes == 1) out.set_value();
    if (changes == 2) back.set_value();
  });
  EXPECT_TRUE(Start(Timing()).get().has_time()) << "the timing itself went well";
  out.get_future().get();
  ASSERT_EQ(workplace.problems().size(), 1u);
  EXPECT_EQ(workplace.problems()[0].device_uuid(), workplace.devices()[0].uuid());
  ASSERT_EQ(back.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
  EXPECT_TRUE(workplace.problems().empty());
}

}  // namespace
}  // namespace fusion
