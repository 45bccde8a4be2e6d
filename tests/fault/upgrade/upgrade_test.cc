// A farm one version apart: what was sent by the version before is taken, what a later one sends beyond that
// harms nothing.
#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/rpc/status_conversion.h"
#include "base/sha256.h"
#include "base/temporary_directory.h"
#include "fusion/v1/optimizer.grpc.pb.h"
#include "fusion/v1/worker.grpc.pb.h"
#include "server/rpc/server.h"
#include "worker/agent/agent.h"

namespace fusion {
namespace {

constexpr char kSource[] = "size n = 1000;\nvector[n] x, y, z;\ninput x, y;\nz = vadd(x, y);\nreturn z;\n";

v1::DeviceDescription Device() {
  v1::DeviceDescription device;
  device.set_name("Ryzen");
  device.set_target(v1::HOST);
  device.set_arch("x86-64-v4");
  device.set_uuid("CPU-1");
  device.set_copy_bytes_per_second(2e10);
  return device;
}

// One build and one timing through the dispatcher.
absl::StatusOr<v1::JobResult> BuildAndTime(const v1::SubmitRequest&, const PipelineContext& context) {
  auto device = context.dispatcher.ChooseDevice(v1::HOST, "", std::chrono::seconds(60), context.cancellation,
                                                context.job);
  if (!device.ok()) return device.status();
  v1::BuildTask build;
  build.set_key(absl::StrCat("sha256:", context.job));
  build.set_target(v1::HOST);
  build.set_arch(device->arch());
  build.set_source("// nothing");
  auto built = context.dispatcher.Build(context.job, {build}, context.cancellation);
  if (!built.ok()) return built.status();
  v1::TimeTask time;
  time.mutable_session()->set_key("session");
  time.add_programs()->set_name("candidate 1");
  time.set_device_uuid(device->uuid());
  v1::JobResult result;
  absl::Status timed = context.dispatcher.Time(
      context.job, {time}, *device, context.cancellation, [&](int, const v1::TimeResult& measured, bool) {
        *result.add_candidates()->mutable_measured() = measured.programs(0).cold();
      });
  if (!timed.ok()) return timed;
  result.set_builds(static_cast<int>(built->size()));
  result.mutable_device()->set_name((*built)[0].result.binary());
  return result;
}

// A worker that speaks the protocol by hand, over the network: every build gives the same binary, every
// timing takes 7 s.
class HandMadeWorker {
 public:
  using Change = std::function<void(v1::SynchronizeRequest*)>;
  // `change`: made to each request before it is sent.
  HandMadeWorker(const std::string& address, const std::string& instance, Change change = nullptr)
      : stub_(v1::WorkerService::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()))),
        instance_(instance),
        change_(std::move(change)) {}
  ~HandMadeWorker() { Stop(); }
  void Start() {
    thread_ = std::jthread([this](std::stop_token stop) {
      while (!stop.stop_requested()) Call(0.1);
    });
  }
  void Stop() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    thread_.join();
  }
  // One call; work that it assigns is done at once and reported by the next.
  v1::SynchronizeResponse Call(double wait_seconds, bool draining = false) {
    // Fields 1 to 8: all that there was.
    v1::SynchronizeRequest request;
    request.set_worker("alpha");
    request.set_instance(instance_);
    *request.add_devices() = Device();
    for (const auto& [task, report] : reports_) *request.add_tasks() = report;
    request.set_free_build_slots(draining ? 0 : 2);
    request.set_free_time_slots(draining ? 0 : 1);
    request.set_draining(draining);
    request.set_wait_seconds(wait_seconds);
    if (change_) change_(&request);
    grpc::ClientContext context;
    v1::SynchronizeResponse response;
    const grpc::Status status = stub_->Synchronize(&context, request, &response);
    if (!status.ok()) return response;
    for (const std::string& task : response.accepted()) reports_.erase(task);
    for (const v1::Assignment& assignment : response.assignments())
      reports_[assignment.task()] = Do(assignment);
    return response;
  }
  int builds() const { return builds_; }
  int timings() const { return timings_; }
  // Of the assignments so far. Call when it has stopped.
  const std::set<std::string>& traceparents() const { return traceparents_; }

 private:
  v1::TaskReport Do(const v1::Assignment& assignment) {
    v1::TaskReport report;
    report.set_task(assignment.task());
    report.set_fence(assignment.fence());
    traceparents_.insert(assignment.traceparent());
    if (assignment.has_build()) {
      ++builds_;
      report.mutable_build()->set_outcome(v1::OK);
      report.mutable_build()->set_binary(Upload("device code"));
    } else {
      ++timings_;
      report.mutable_time()->add_programs()->mutable_cold()->set_median(7);
    }
    return report;
  }
  std::string Upload(const std::string& content) {
    grpc::ClientContext context;
    v1::WriteBlobResponse response;
    auto writer = stub_->WriteBlob(&context, &response);
    v1::Chunk chunk;
    chunk.set_data(content);
    chunk.set_digest(absl::StrCat("sha256:", Sha256Hex(content)));
    chunk.set_total_bytes(static_cast<int64_t>(content.size()));
    writer->Write(chunk);
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.digest();
  }

  const std::unique_ptr<v1::WorkerService::Stub> stub_;
  const std::string instance_;
  const Change change_;
  std::map<std::string, v1::TaskReport> reports_;
  std::set<std::string> traceparents_;
  std::atomic<int> builds_ = 0, timings_ = 0;
  std::jthread thread_;
};

class UpgradeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::Create();
    ASSERT_TRUE(directory.ok());
    directory_ = *std::move(directory);
    ServerOptions options;
    options.address = "127.0.0.1:0";
    options.data_directory = directory_->path();
    options.runner.pipeline = BuildAndTime;
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
  }
  std::string Submit(const std::string& traceparent = "") {
    grpc::ClientContext context;
    if (!traceparent.empty()) context.AddMetadata("traceparent", traceparent);
    v1::SubmitRequest request;
    request.mutable_source()->set_fuse(kSource);
    request.mutable_source()->set_file_name("add.fuse");
    v1::Job job;
    const grpc::Status status = v1::OptimizerService::NewStub(channel_)->Submit(&context, request, &job);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return job.name();
  }
  // The job at its end.
  v1::Job Ended(const std::string& name) {
    grpc::ClientContext context;
    v1::WatchJobRequest request;
    request.set_name(name);
    auto stub = v1::OptimizerService::NewStub(channel_);
    auto reader = stub->WatchJob(&context, request);
    v1::JobEvent event;
    while (reader->Read(&event)) {
    }
    reader->Finish();
    return event.finished();
  }
  void ExpectDone(const v1::Job& job) {
    EXPECT_EQ(job.state(), v1::SUCCEEDED) << job.error().message();
    EXPECT_EQ(job.result().builds(), 1);
    ASSERT_EQ(job.result().candidates_size(), 1);
    EXPECT_EQ(job.result().candidates(0).measured().median(), 7);
  }

  std::unique_ptr<TemporaryDirectory> directory_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(UpgradeTest, AWorkerOfTheVersionBeforeBuildsAndTimes) {
  HandMadeWorker worker(server_->address(), "process 1");
  worker.Start();
  ExpectDone(Ended(Submit()));
  EXPECT_EQ(worker.builds(), 1);
  EXPECT_EQ(worker.timings(), 1);
}

TEST_F(UpgradeTest, AssignmentsCarryTheTraceOfTheJob) {
  HandMadeWorker worker(server_->address(), "process 1");
  worker.Start();
  const std::string trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  ExpectDone(Ended(Submit(trace)));
  worker.Stop();
  EXPECT_THAT(worker.traceparents(), ::testing::ElementsAre(trace));
}

TEST_F(UpgradeTest, AWorkerOfALaterVersionBuildsAndTimes) {
  HandMadeWorker worker(server_->address(), "process 1", [](v1::SynchronizeRequest* request) {
    request->GetReflection()->MutableUnknownFields(request)->AddLengthDelimited(900, "from a later version");
    for (v1::DeviceDescription& device : *request->mutable_devices())
      device.GetReflection()->MutableUnknownFields(&device)->AddVarint(901, 7);
    for (v1::TaskReport& report : *request->mutable_tasks())
      report.GetReflection()->MutableUnknownFields(&report)->AddVarint(902, 7);
  });
  worker.Start();
  ExpectDone(Ended(Submit()));
}

TEST_F(UpgradeTest, WorkersAreReplacedOneByOneWhileJobsRun) {
  HandMadeWorker before(server_->address(), "process 1");
  before.Call(0);  // so that the job finds its device
  const std::string job = Submit();
  while (before.builds() == 0) before.Call(1);
  // It drains: what it has done is taken, nothing new is given.
  const v1::SynchronizeResponse last = before.Call(0, /*draining=*/true);
  EXPECT_EQ(last.accepted_size(), 1);
  EXPECT_EQ(last.assignments_size(), 0);
  HandMadeWorker after(server_->address(), "process 2");
  after.Start();
  ExpectDone(Ended(job));
  EXPECT_EQ(before.timings(), 0);
  EXPECT_EQ(after.timings(), 1);
  EXPECT_EQ(after.builds(), 0) << "what was built before is kept";
  after.Stop();
  // The earlier process, should it still call, is told to stop.
  EXPECT_TRUE(before.Call(0).drain());
}

// A server of the version before: knows the fields 1 to 8 of a request, and gives a build, then a timing.
class ServerOfBefore final : public v1::WorkerService::Service {
 public:
  grpc::Status Synchronize(grpc::ServerContext*, const v1::SynchronizeRequest* sent,
                           v1::SynchronizeResponse* response) override {
    v1::SynchronizeRequest request = *sent;
    request.clear_builds();
    request.clear_free_devices();
    request.clear_problems();
    request.clear_confinement();
    request.clear_version();
    std::unique_lock lock(mutex_);
    bool held = false;
    for (const v1::TaskReport& report : request.tasks()) {
      if (report.state_case() == v1::TaskReport::kRunning) {
        held = true;
        continue;
      }
      results_[report.task()] = report;
      response->add_accepted(report.task());
    }
    if (!held && !request.draining() && request.devices_size() > 0) {
      if (!results_.contains("tasks/1") && request.free_build_slots() > 0) {
        v1::Assignment& assignment = *response->add_assignments();
        assignment.set_task("tasks/1");
        assignment.set_fence(1);
        assignment.mutable_build()->set_target(v1::HOST);
        assignment.mutable_build()->set_source("#error this is the source\n");
        assignment.mutable_build()->set_deadline_seconds(60);
      } else if (results_.contains("tasks/1") && !results_.contains("tasks/2") &&
                 request.free_time_slots() > 0) {
        v1::Assignment& assignment = *response->add_assignments();
        assignment.set_task("tasks/2");
        assignment.set_fence(1);
        assignment.mutable_time()->set_device_uuid(request.devices(0).uuid());
      }
    }
    if (results_.size() == 2) response->set_drain(true);
    response->set_next_contact_seconds(response->assignments_size() + response->accepted_size() > 0 ? 0
                                                                                                    : 0.1);
    return grpc::Status::OK;
  }
  std::map<std::string, v1::TaskReport> results() {
    std::lock_guard lock(mutex_);
    return results_;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, v1::TaskReport> results_;  // guarded by mutex_
};

TEST(UpgradeOfWorkersTest, AWorkerOfThisVersionWorksForAServerOfTheVersionBefore) {
  ServerOfBefore service;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  AgentOptions options;
  options.name = "alpha";
  options.workplace.cuda = false;
  options.workplace.build_slots = 1;
  Agent agent(options,
              grpc::CreateChannel(absl::StrCat("127.0.0.1:", port), grpc::InsecureChannelCredentials()));
  // Ends because it is drained when both results are there.
  ASSERT_TRUE(agent.Run().ok());
  const auto results = service.results();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results.at("tasks/1").build().outcome(), v1::COMPILE_ERROR);
  EXPECT_THAT(results.at("tasks/1").build().log(), ::testing::HasSubstr("this is the source"));
  // An empty timing measures nothing, and is answered.
  EXPECT_TRUE(results.at("tasks/2").has_time() || results.at("tasks/2").has_failure());
  server->Shutdown();
}

}  // namespace
}  // namespace fusion
