// A whole server beside its jobs: its start, workers, binaries, devices, reports and functions.
#include "server/rpc/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/rpc/chunks.h"
#include "base/temporary_directory.h"
#include "db/store/database_file.h"
#include "server/target/target.h"
#include "server/upkeep/backup.h"
#include "server/upkeep/data_directory.h"
#include "tests/unit/rpc/server_fixture.h"

namespace fusion {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(ServerTest, SecondServerOnTheDataDirectoryIsRefused) {
  StartServer([](const v1::SubmitRequest&, const PipelineContext&) { return Result(); });
  ServerOptions options;
  options.data_directory = directory_->path();
  absl::StatusOr<std::unique_ptr<Server>> second = Server::Start(options);
  EXPECT_TRUE(absl::IsUnavailable(second.status())) << second.status();
}

TEST_F(ServerTest, ADamagedDatabaseIsRefusedWithWhatToDo) {
  StartServer([](const v1::SubmitRequest&, const PipelineContext&) { return Result(); });
  const auto backup = BackUpStore(server_->store(), directory_->path(), Timestamp(std::chrono::seconds(1)));
  ASSERT_TRUE(backup.ok()) << backup.status();
  server_.reset();
  std::filesystem::resize_file(DatabasePath(directory_->path()), 3 * 4096);
  ServerOptions options;
  options.data_directory = directory_->path();
  const absl::Status refused = Server::Start(options).status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr(absl::StrCat("fusion-server restore --data ", directory_->path(), " --input ",
                                     directory_->path(), "/fusion-backup-")));
  ASSERT_TRUE(RestoreDatabase(backup->path(), DatabasePath(directory_->path()), TimeOfDay()).ok());
  EXPECT_TRUE(Server::Start(options).ok());
}

TEST_F(ServerTest, TakenAddressIsAClearError) {
  StartServer([](const v1::SubmitRequest&, const PipelineContext&) { return Result(); });
  auto other_directory = TemporaryDirectory::Create(), third_directory = TemporaryDirectory::Create();
  ASSERT_TRUE(other_directory.ok() && third_directory.ok());
  ServerOptions options;
  options.address = "127.0.0.1:0";
  options.data_directory = (*other_directory)->path();
  absl::StatusOr<std::unique_ptr<Server>> first = Server::Start(options);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT((*first)->address(), ::testing::MatchesRegex("127.0.0.1:[1-9][0-9]*"));
  options.address = (*first)->address();
  options.data_directory = (*third_directory)->path();
  absl::StatusOr<std::unique_ptr<Server>> second = Server::Start(options);
  EXPECT_TRUE(absl::IsUnavailable(second.status())) << second.status();
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("cannot listen on 127.0.0.1"));
}

TEST_F(ServerTest, BlobsTravelInChunks) {
  StartServer([](const v1::SubmitRequest&, const PipelineContext&) { return Result(); });
  const std::string bytes(3 * kChunkBytes + 17, 'x');
  auto write = [&](const std::string& digest) -> absl::StatusOr<std::string> {
    grpc::ClientContext context;
    v1::WriteBlobResponse response;
    auto writer = worker_->WriteBlob(&context, &response);
    ChunkSplitter splitter(digest, bytes);
    for (v1::Chunk chunk; splitter.Next(&chunk);)
      if (!writer->Write(chunk)) break;
    writer->WritesDone();
    grpc::Status status = writer->Finish();
    if (!status.ok()) return FromGrpcStatus(status);
    return response.digest();
  };
  auto read = [&](const std::string& digest) -> absl::StatusOr<std::string> {
    grpc::ClientContext context;
    v1::ReadBlobRequest request;
    request.set_digest(digest);
    auto reader = worker_->ReadBlob(&context, request);
    ChunkAssembler assembler;
    for (v1::Chunk chunk; reader->Read(&chunk);)
      if (absl::Status status = assembler.Add(chunk); !status.ok()) return status;
    grpc::Status status = reader->Finish();
    if (!status.ok()) return FromGrpcStatus(status);
    return std::move(assembler).Finish();
  };
  absl::StatusOr<std::string> digest = write(BlobDigest(bytes));
  ASSERT_TRUE(digest.ok()) << digest.status();
  absl::StatusOr<std::string> back = read(*digest);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, bytes);
  EXPECT_TRUE(absl::IsDataLoss(write("sha256:0123").status()));
  EXPECT_TRUE(absl::IsNotFound(read("sha256:0123").status()));
}

TEST_F(ServerTest, AnUnknownArchitectureIsServedByADeviceOfTheNearestOlderOne) {
  StartServer([](const v1::SubmitRequest&, const PipelineContext&) { return Result(); });
  const auto connect = [&](const std::string& worker, const std::string& arch) {
    v1::SynchronizeRequest request;
    v1::SynchronizeResponse response;
    request.set_worker(worker);
    request.set_instance("1");
    *request.add_devices() = DescribedDevice(v1::CUDA, "sm_86");
    request.mutable_devices(0)->set_name("the GPU of " + worker);
    request.mutable_devices(0)->set_uuid(worker);
    request.mutable_devices(0)->set_arch(arch);
    grpc::ClientContext context;
    EXPECT_TRUE(worker_->Synchronize(&context, request, &response).ok());
  };
  const auto explain = [&] {
    v1::ExplainRequest request;
    *request.mutable_source() = Request().source();
    request.set_arch("sm_87");
    v1::ExplainResponse response;
    grpc::ClientContext context;
    const grpc::Status status = optimizer_->Explain(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  };
  connect("alpha", "sm_86");
  const v1::ExplainResponse nearest = explain();
  EXPECT_EQ(nearest.device().name(), "the GPU of alpha");
  EXPECT_THAT(nearest.search().notes(), Contains(HasSubstr("taking the nearest older one, sm_86")));
  connect("beta", "sm_87");
  const v1::ExplainResponse exact = explain();
  EXPECT_EQ(exact.device().name(), "the GPU of beta");
  EXPECT_THAT(exact.search().notes(), Not(Contains(HasSubstr("nearest"))));
}

TEST_F(ServerTest, WorkersAreListedAndLongPollsEndAtShutdown) {
  StartServer([](const v1::SubmitRequest&, const PipelineContext&) { return Result(); });
  v1::SynchronizeRequest request;
  v1::SynchronizeResponse response;
  {
    grpc::ClientContext context;
    EXPECT_EQ(worker_->Synchronize(&context, request, &response).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
  request.set_worker("alpha");
  request.set_instance("1");
  {
    grpc::ClientContext context;
    ASSERT_TRUE(worker_->Synchronize(&context, request, &response).ok());
  }
  auto fleet = v1::FleetService::NewStub(server_->InProcessChannel());
  v1::ListWorkersResponse workers;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(fleet->ListWorkers(&context, v1::ListWorkersRequest(), &workers).ok());
  }
  ASSERT_EQ(workers.workers_size(), 1);
  EXPECT_THAT(workers.workers(0).name(), HasSubstr("alpha"));
  // Another worker waits for work.
  request.set_worker("beta");
  request.set_wait_seconds(1000);
  grpc::Status polled;
  std::thread poller([&] {
    grpc::ClientContext context;
    polled = worker_->Synchronize(&context, request, &response);
  });
  while (workers.workers_size() < 2) {
    grpc::ClientContext context;
    workers.Clear();
    ASSERT_TRUE(fleet->ListWorkers(&context, v1::ListWorkersRequest(), &workers).ok());
    std::this_thread::yield();
  }
  server_->Shutdown();
  poller.join();
  EXPECT_TRUE(polled.ok()) << polled.error_message();
}

TEST_F(ServerTest, ReportsOnThePredictionsOfJobsThatSucceeded) {
  StartServer([](const v1::SubmitRequest&, const PipelineContext&) -> absl::StatusOr<v1::JobResult> {
    v1::JobResult result;
    result.mutable_graph()->set_name("add");
    v1::Candidate* candidate = result.add_candidates();
    candidate->set_outcome(v1::OK);
    candidate->set_predicted_rank(1);
    candidate->set_predicted_seconds(3e-3);
    candidate->mutable_measured()->set_median(2e-3);
    return result;
  });
  auto report = [&](v1::ReportModelResponse* response) {
    grpc::ClientContext context;
    return optimizer_->ReportModel(&context, v1::ReportModelRequest(), response);
  };
  v1::ReportModelResponse response;
  EXPECT_EQ(report(&response).error_code(), grpc::StatusCode::NOT_FOUND);
  absl::StatusOr<v1::Job> job = Submit(Request());
  ASSERT_TRUE(job.ok());
  std::vector<v1::JobEvent> events;
  EXPECT_TRUE(Watch(job->name(), 0, &events).ok());
  const grpc::Status status = report(&response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.graphs_size(), 1);
  EXPECT_EQ(response.graphs(0).job(), job->name());
  EXPECT_DOUBLE_EQ(response.graphs(0).median_absolute_error(), 0.5);
}

TEST_F(ServerTest, CheckAndFunctions) {
  StartServer([](const v1::SubmitRequest&, const PipelineContext&) { return Result(); });
  v1::CheckRequest check;
  *check.mutable_source() = Request().source();
  v1::CheckResponse checked;
  {
    grpc::ClientContext context;
    grpc::Status status = optimizer_->Check(&context, check, &checked);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  EXPECT_EQ(checked.graph().nodes(), 1);
  EXPECT_THAT(checked.fuse(), HasSubstr("vadd(x, y)"));
  EXPECT_THAT(checked.graphviz(), HasSubstr("digraph"));
  EXPECT_EQ(checked.proto().calls_size(), 1);

  v1::ListFunctionsRequest functions;
  functions.set_name("vadd");
  v1::ListFunctionsResponse found;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(optimizer_->ListFunctions(&context, functions, &found).ok());
  }
  ASSERT_EQ(found.functions_size(), 1);
  EXPECT_EQ(found.functions(0).name(), "vadd");
  functions.set_name("vaddd");
  grpc::ClientContext context;
  grpc::Status status = optimizer_->ListFunctions(&context, functions, &found);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("did you mean vadd"));
}

}  // namespace
}  // namespace fusion
