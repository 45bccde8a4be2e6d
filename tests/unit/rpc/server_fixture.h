// A whole server, with pipelines made for each test, and calls of its services over its in-process channel.
#pragma once

#include <grpcpp/client_context.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/rpc/status_conversion.h"
#include "base/temporary_directory.h"
#include "fusion/v1/optimizer.grpc.pb.h"
#include "fusion/v1/worker.grpc.pb.h"
#include "server/rpc/server.h"
#include "tests/unit/jobs/barrier.h"

namespace fusion {

using Pipeline = decltype(JobRunnerOptions::pipeline);

inline constexpr char kSource[] =
    "size n = 1000;\nvector[n] x, y, z;\ninput x, y;\nz = vadd(x, y);\nreturn z;\n";

inline v1::JobResult Result() {
  v1::JobResult result;
  result.set_builds(7);
  result.add_candidates()->set_outcome(v1::OK);
  return result;
}

inline v1::JobEvent Note(const std::string& text) {
  v1::JobEvent event;
  event.set_note(text);
  return event;
}

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto directory = TemporaryDirectory::Create();
    ASSERT_TRUE(directory.ok());
    directory_ = *std::move(directory);
  }
  void TearDown() override { server_.reset(); }

  void StartServer(Pipeline pipeline, bool resume = true) {
    server_.reset();
    ServerOptions options;
    options.data_directory = directory_->path();
    options.resume_jobs = resume;
    options.runner.pipeline = std::move(pipeline);
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    optimizer_ = v1::OptimizerService::NewStub(server_->InProcessChannel());
    worker_ = v1::WorkerService::NewStub(server_->InProcessChannel());
  }

  static v1::SubmitRequest Request(const std::string& request_id = "") {
    v1::SubmitRequest request;
    request.mutable_source()->set_fuse(kSource);
    request.mutable_source()->set_file_name("add.fuse");
    request.set_request_id(request_id);
    return request;
  }
  absl::StatusOr<v1::Job> Submit(const v1::SubmitRequest& request) {
    grpc::ClientContext context;
    v1::Job job;
    grpc::Status status = optimizer_->Submit(&context, request, &job);
    if (!status.ok()) return FromGrpcStatus(status);
    return job;
  }
  v1::Job Get(const std::string& name) {
    grpc::ClientContext context;
    v1::GetJobRequest request;
    request.set_name(name);
    v1::Job job;
    grpc::Status status = optimizer_->GetJob(&context, request, &job);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return job;
  }
  absl::Status Watch(const std::string& name, int64_t after, std::vector<v1::JobEvent>* events,
                     const std::function<void(const v1::JobEvent&)>& on_event = nullptr) {
    grpc::ClientContext context;
    v1::WatchJobRequest request;
    request.set_name(name);
    request.set_after_sequence(after);
    auto reader = optimizer_->WatchJob(&context, request);
    for (v1::JobEvent event; reader->Read(&event);) {
      events->push_back(event);
      if (on_event) on_event(event);
    }
    return FromGrpcStatus(reader->Finish());
  }

  std::unique_ptr<TemporaryDirectory> directory_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::OptimizerService::Stub> optimizer_;
  std::unique_ptr<v1::WorkerService::Stub> worker_;
};

}  // namespace fusion
