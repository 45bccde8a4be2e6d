// The agent against a small server in this process, on the host.
#include "worker/agent/agent.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/eventually.h"
#include "tests/unit/agent/fake_server.h"
#include "worker/agent/worker_metrics.h"
#include "worker/build/host_builder.h"

namespace fusion {
namespace {

using std::chrono::seconds;

// Whether the worker holds the task, by its last call.
std::function<bool(FakeServer&)> Running(const std::string& task) {
  return [task](FakeServer& server) {
    for (const v1::TaskReport& report : server.last_.tasks())
      if (report.task() == task) return true;
    return false;
  };
}

class AgentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (auto builder = HostBuilder::Create(); !builder.ok())
      GTEST_SKIP() << "SKIP: " << builder.status().message();
    StartServer();
    AgentOptions options;
    options.name = "tester";
    options.workplace.cuda = false;
    options.workplace.build_slots = 2;
    options.workplace.spare_runners = 1;
    options.metrics = &metrics_;
    options.workplace.allow_unconfined_host_code = true;  // these tests are about other things
    options.wait_seconds = wait_seconds_;
    options.drain_seconds = drain_seconds_;
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
    agent_ = std::make_unique<Agent>(
        options, grpc::CreateCustomChannel(absl::StrCat("localhost:", port_),
                                           grpc::InsecureChannelCredentials(), arguments));
    thread_ = std::thread([this] { status_ = agent_->Run(); });
  }
  void TearDown() override {
    if (agent_ != nullptr) agent_->Stop();
    if (thread_.joinable()) thread_.join();
    StopServer();
  }
  void StartServer() {
    service_ = std::make_unique<FakeServer>();
    grpc::ServerBuilder builder;
    builder.AddListeningPort(absl::StrCat("localhost:", port_), grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void StopServer() {
    if (server_ == nullptr) return;
    service_->Shut();
    server_->Shutdown(std::chrono::system_clock::now() + seconds(2));
    server_.reset();
  }

  static v1::Assignment Build(const std::string& task, const std::string& source) {
    v1::Assignment assignment;
    assignment.set_task(task);
    assignment.set_fence(7);
    assignment.mutable_build()->set_target(v1::HOST);
    assignment.mutable_build()->set_arch(HostArch());
    assignment.mutable_build()->set_source(source);
    return assignment;
  }
  v1::DeviceDescription Device() {
    EXPECT_TRUE(service_->WaitUntil([](FakeServer& server) { return server.last_.devices_size() > 0; }));
    std::lock_guard lock(service_->mutex_);
    return service_->last_.devices(0);
  }
  // Times y = 2 x on the device; the kernel's body is given.
  v1::Assignment Time(const std::string& task, const std::string& body) {
    const std::string source = absl::StrCat(
        "template <class T> void Run(void* const* a) { T *x = *(T**)a[0], *y = *(T**)a[1]; "
        "for (int i = 0; i < 1000; ++i) { ",
        body,
        " } }\n"
        "extern \"C\" void narrow(long long, void* const* a) { Run<float>(a); }\n"
        "extern \"C\" void wide(long long, void* const* a) { Run<double>(a); }\n");
    const std::string good =
        "template <class T> void Run(void* const* a) { T *x = *(T**)a[0], *y = *(T**)a[1]; "
        "for (int i = 0; i < 1000; ++i) y[i] = 2 * x[i]; }\n"
        "extern \"C\" void wide(long long, void* const* a) { Run<double>(a); }\n";
    service_->Assign(Build(task + " build", source));
    service_->Assign(Build(task + " reference", good));
    v1::Assignment assignment;
    assignment.set_task(task);
    assignment.set_fence(9);
    v1::TimeTask* time = assignment.mutable_time();
    time->set_device_uuid(Device().uuid());
    auto buffer = [](int id, v1::Buffer* buffer) {
      buffer->set_id(id);
      buffer->set_name(id == 0 ? "x" : "y");
      buffer->set_count(1000);
      buffer->set_data_type(v1::F32);
    };
    v1::Session* session = time->mutable_session();
    session->set_key(task);
    buffer(0, session->add_inputs());
    buffer(1, session->add_outputs());
    session->add_tolerances(1e-6);
    auto program = [&](const std::string& binary, const char* kernel, v1::Program* program) {
      program->set_name(kernel);
      v1::Launch* launch = program->add_launches();
      launch->set_binary(service_->WaitFor(binary).build().binary());
      launch->set_kernel(kernel);
      launch->set_grid(1);
      launch->set_threads(1);
      launch->add_arguments()->set_buffer(0);
      launch->add_arguments()->set_buffer(1);
    };
    program(task + " reference", "wide", session->mutable_reference());
    program(task + " build", "narrow", time->add_programs());
    time->mutable_method()->set_minimum_samples(3);
    time->mutable_method()->set_maximum_samples(4);
    time->mutable_method()->set_run_deadline_seconds(600);
    return assignment;
  }

  // Whether the metrics come to have the text.
  bool MetricsSay(const std::string& text) {
    return Eventually([&] { return metrics_.registry.Text().find(text) != std::string::npos; });
  }

  WorkerMetrics metrics_;
  double wait_seconds_ = 1;  // for which the server holds calls
  double drain_seconds_ = 120;
  int port_ = 0;
  std::unique_ptr<FakeServer> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Agent> agent_;
  std::thread thread_;
  absl::Status status_;
};

// Calls are held for longer than MetricsSay waits.
class PatientAgentTest : public AgentTest {
 protected:
  PatientAgentTest() { wait_seconds_ = 120; }
};

TEST_F(PatientAgentTest, IsConnectedAsSoonAsTheServerKnowsIt) {
  EXPECT_TRUE(MetricsSay("\nfusion_worker_connected 1\n"));
  EXPECT_TRUE(service_->WaitUntil([](FakeServer& server) { return server.last_.wait_seconds() == 120; }))
      << "from then on calls are held";
}

TEST_F(AgentTest, SaysWhatItIs) {
  const v1::DeviceDescription device = Device();
  EXPECT_EQ(device.target(), v1::HOST);
  std::lock_guard lock(service_->mutex_);
  EXPECT_EQ(service_->last_.worker(), "tester");
  EXPECT_NE(service_->last_.instance(), "");
  EXPECT_EQ(service_->last_.free_build_slots(), 2);
  EXPECT_EQ(service_->last_.free_time_slots(), 1);
}

TEST_F(AgentTest, BuildsAndStoresTheBinaryBeforeItReports) {
  service_->Assign(Build("good", "extern \"C\" void f() {}"));
  service_->Assign(Build("bad", "not C++"));
  const v1::TaskReport good = service_->WaitFor("good");
  EXPECT_EQ(good.fence(), 7);
  EXPECT_EQ(good.build().outcome(), v1::OK) << good.build().log();
  EXPECT_EQ(service_->WaitFor("bad").build().outcome(), v1::COMPILE_ERROR);
  std::lock_guard lock(service_->mutex_);
  EXPECT_TRUE(service_->blobs_.contains(good.build().binary()));
}

class NoFolderAgentTest : public AgentTest {
 protected:
  NoFolderAgentTest() {
    if (const char* folder = std::getenv("TMPDIR"); folder != nullptr) before_ = folder;
    setenv("TMPDIR", "/no/such/folder", 1);
  }
  ~NoFolderAgentTest() override {
    if (before_.empty()) {
      unsetenv("TMPDIR");
    } else {
      setenv("TMPDIR", before_.c_str(), 1);
    }
  }

 private:
  std::string before_;
};

TEST_F(NoFolderAgentTest, ABuildWithoutAPlaceIsAFailureOfTheTaskAndNoOutcome) {
  service_->Assign(Build("good", "extern \"C\" void f() {}"));
  const v1::TaskReport report = service_->WaitFor("good");
  EXPECT_FALSE(report.has_build()) << v1::Outcome_Name(report.build().outcome());
  EXPECT_NE(report.failure().find("TMPDIR"), std::string::npos) << report.failure();
}

// Each would be a reset of a stream, of which servers take 50 a second from a connection: a worker that
// cancelled a call whenever something had ended got no more done than that.
TEST_F(PatientAgentTest, NewsCancelsNoCall) {
  for (int i = 0; i < 10; ++i) {
    const std::string task = absl::StrCat("build ", i);
    EXPECT_TRUE(service_->WaitUntil([](FakeServer& server) { return server.last_.wait_seconds() > 0; }));
    service_->Assign(Build(task, absl::StrCat("extern \"C\" void f", i, "() {}")));
    EXPECT_EQ(service_->WaitFor(task).build().outcome(), v1::OK);
  }
  std::lock_guard lock(service_->mutex_);
  EXPECT_EQ(service_->cancelled_calls_, 0);
}

TEST_F(AgentTest, TimesWhatItBuilt) {
  service_->Assign(Time("time", "y[i] = 2 * x[i];"));
  const v1::TaskReport report = service_->WaitFor("time");
  ASSERT_TRUE(report.has_time()) << report.failure();
  EXPECT_EQ(report.fence(), 9);
  ASSERT_EQ(report.time().programs_size(), 1);
  EXPECT_EQ(report.time().programs(0).outcome(), v1::OK) << report.time().programs(0).message();
  EXPECT_GT(report.time().programs(0).cold().median(), 0);
}

TEST_F(AgentTest, ACrashCostsASpareRunnerAndAnotherIsMade) {
  const std::string uuid = Device().uuid();
  const std::string ready = absl::StrCat("fusion_worker_spare_runners{device=\"", uuid, "\"} 1\n");
  EXPECT_TRUE(MetricsSay(ready)) << metrics_.registry.Text();
  service_->Assign(Time("crash", "y[i] = 2 * x[i]; if (i == 9) *(volatile int*)64 = 1;"));
  const v1::TaskReport crash = service_->WaitFor("crash");
  ASSERT_TRUE(crash.has_time()) << crash.failure();
  EXPECT_EQ(crash.time().programs(0).outcome(), v1::FAULT);
  service_->Assign(Time("next", "y[i] = 2 * x[i];"));
  const v1::TaskReport next = service_->WaitFor("next");
  ASSERT_TRUE(next.has_time()) << next.failure();
  EXPECT_EQ(next.time().programs(0).outcome(), v1::OK) << next.time().programs(0).message();
  EXPECT_TRUE(MetricsSay(ready)) << metrics_.registry.Text();
  EXPECT_TRUE(MetricsSay(absl::StrCat("fusion_worker_runner_restarts_total{device=\"", uuid, "\"} 1\n")));
  for (const char* part : {"idle", "fetch", "turn", "start", "transfer", "inputs", "reference", "load",
                           "cold", "warm", "verify"})
    EXPECT_TRUE(MetricsSay(
        absl::StrCat("fusion_worker_timing_seconds_total{device=\"", uuid, "\",part=\"", part, "\"} ")))
        << part;
}

TEST_F(AgentTest, ABlobThatIsNotThereOrNotWhatItSaysIsAFailureOfTheTask) {
  v1::Assignment assignment = Time("time", "y[i] = 2 * x[i];");
  assignment.mutable_time()->mutable_programs(0)->mutable_launches(0)->set_binary("sha256:absent");
  service_->Assign(assignment);
  EXPECT_NE(service_->WaitFor("time").failure().find("sha256:absent"), std::string::npos);
  service_->PutBlob("sha256:forged", "something else");
  assignment.set_task("forged");
  assignment.mutable_time()->mutable_programs(0)->mutable_launches(0)->set_binary("sha256:forged");
  service_->Assign(assignment);
  EXPECT_NE(service_->WaitFor("forged").failure().find("sha256:forged"), std::string::npos);
}

TEST_F(AgentTest, AnUnknownDeviceOrTargetIsAFailureOfTheTask) {
  v1::Assignment time;
  time.set_task("elsewhere");
  time.mutable_time()->set_device_uuid("GPU-1");
  service_->Assign(time);
  EXPECT_NE(service_->WaitFor("elsewhere").failure().find("GPU-1"), std::string::npos);
  v1::Assignment build = Build("cuda", "");
  build.mutable_build()->set_target(v1::CUDA);
  service_->Assign(build);
  EXPECT_NE(service_->WaitFor("cuda").failure().find("no compiler for CUDA"), std::string::npos);
}

TEST_F(AgentTest, KeepsAResultUntilItIsAccepted) {
  service_->RefuseEachResult(3);
  service_->Assign(Build("good", "extern \"C\" void f() {}"));
  EXPECT_EQ(service_->WaitFor("good").build().outcome(), v1::OK);
  std::lock_guard lock(service_->mutex_);
  EXPECT_EQ(service_->reports_["good"], 4);
}

// What comes next of a job is known when its result has arrived: a device would be idle until the next
// contact.
TEST_F(AgentTest, CallsAtOnceWhenItsResultIsAccepted) {
  {
    std::lock_guard lock(service_->mutex_);
    service_->poll_seconds_ = 5;
  }
  for (int i = 0; i < 3; ++i)
    service_->Assign(Build(absl::StrCat("build", i), absl::StrCat("extern \"C\" void f", i, "() {}")));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(service_->WaitFor(absl::StrCat("build", i)).has_build());
  std::unique_lock lock(service_->mutex_);
  EXPECT_TRUE(service_->changed_.wait_for(lock, seconds(3), [&] { return service_->last_.tasks().empty(); }));
}

TEST_F(AgentTest, ACancelledTimingEndsAndTheNextOneRuns) {
  service_->Assign(Time("endless", "while (*(volatile T*)&x[i] < 100) {}"));
  ASSERT_TRUE(service_->WaitUntil(Running("endless")));
  service_->Cancel("endless");
  ASSERT_TRUE(service_->WaitUntil([&](FakeServer& server) { return !Running("endless")(server); }));
  // Builds wait while the host is timed, so this needs the endless run to be over.
  service_->Assign(Build("after", "extern \"C\" void f() {}"));
  EXPECT_EQ(service_->WaitFor("after").build().outcome(), v1::OK);
}

TEST_F(AgentTest, GoesOnWhenTheServerComesBack) {
  Device();
  std::string instance;
  {
    std::lock_guard lock(service_->mutex_);
    instance = service_->last_.instance();
  }
  StopServer();
  StartServer();  // on the same port, knowing nothing
  service_->Assign(Build("later", "extern \"C\" void f() {}"));
  EXPECT_EQ(service_->WaitFor("later").build().outcome(), v1::OK);
  std::lock_guard lock(service_->mutex_);
  EXPECT_EQ(service_->last_.instance(), instance);
}

TEST_F(AgentTest, DrainsWhenTheServerSaysSo) {
  service_->Assign(Build("last", "extern \"C\" void f() {}"));
  ASSERT_TRUE(service_->WaitUntil([](FakeServer& server) { return server.last_.tasks_size() > 0; }));
  service_->Drain();
  thread_.join();
  EXPECT_TRUE(status_.ok()) << status_;
  EXPECT_EQ(service_->WaitFor("last").build().outcome(), v1::OK);
}

class HurriedAgentTest : public AgentTest {
 protected:
  HurriedAgentTest() { drain_seconds_ = 1; }
};

TEST_F(HurriedAgentTest, DrainsWithoutAServerThatStaysAway) {
  service_->Assign(Time("endless", "while (*(volatile T*)&x[i] < 100) {}"));
  ASSERT_TRUE(service_->WaitUntil(Running("endless")));
  StopServer();
  agent_->Drain();
  std::future<void> ended = std::async(std::launch::async, [this] { thread_.join(); });
  const bool in_time = ended.wait_for(seconds(60)) == std::future_status::ready;
  EXPECT_TRUE(in_time);
  if (!in_time) agent_->Stop();
  ended.get();
  EXPECT_TRUE(status_.ok()) << status_;
}

TEST_F(AgentTest, GivesRunningTasksBackWhenStopped) {
  service_->Assign(Time("endless", "while (*(volatile T*)&x[i] < 100) {}"));
  ASSERT_TRUE(service_->WaitUntil(Running("endless")));
  agent_->Stop();
  thread_.join();
  EXPECT_TRUE(status_.ok());
  EXPECT_NE(service_->WaitFor("endless").failure(), "");
}

TEST_F(AgentTest, SaysHowCodeIsConfined) {
  Device();
  std::lock_guard lock(service_->mutex_);
  const v1::Confinement& confinement = service_->last_.confinement();
  SandboxPolicy policy;
  policy.kind = SandboxKind::kHostCode;
  EXPECT_EQ(confinement.host_code(), ConfinementText(policy, MachineOffer::Get()));
  EXPECT_NE(confinement.runner(), "");
  EXPECT_NE(confinement.compiler(), "");
}

// The offer of a machine that can confine nothing.
TEST(WorkplaceTest, AHostThatCannotConfineNativeCodeIsNotOffered) {
  if (auto builder = HostBuilder::Create(); !builder.ok())
    GTEST_SKIP() << "SKIP: " << builder.status().message();
  WorkplaceOptions options;
  options.cuda = false;
  options.offer.emplace().bubblewrap_missing = "bwrap is not there";
  BlobTransfer blobs(grpc::CreateChannel("localhost:1", grpc::InsecureChannelCredentials()), 1 << 20);
  absl::StatusOr<std::unique_ptr<LocalWorkplace>> refusing = LocalWorkplace::Open(options, &blobs);
  ASSERT_TRUE(refusing.ok()) << refusing.status();
  EXPECT_TRUE((*refusing)->devices().empty());
  EXPECT_EQ((*refusing)->confinement().host_code(), "refused");
  ASSERT_FALSE((*refusing)->notes().empty());
  EXPECT_NE((*refusing)->notes()[0].find("--allow-unconfined-host-code"), std::string::npos);
  options.allow_unconfined_host_code = true;
  absl::StatusOr<std::unique_ptr<LocalWorkplace>> allowing = LocalWorkplace::Open(options, &blobs);
  ASSERT_TRUE(allowing.ok()) << allowing.status();
  EXPECT_EQ((*allowing)->devices().size(), 1u);
  EXPECT_NE((*allowing)->confinement().host_code(), "refused");
}

TEST(AgentStartTest, WithoutDevicesAndCompilersItSaysWhy) {
  AgentOptions options;
  options.workplace.runner_program = "/no/such/runner";
  options.workplace.cuda = false;
  options.workplace.allow_unconfined_host_code = true;
  Agent agent(options, grpc::CreateChannel("localhost:1", grpc::InsecureChannelCredentials()));
  EXPECT_EQ(agent.Run().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace fusion
