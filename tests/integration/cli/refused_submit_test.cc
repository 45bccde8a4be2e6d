// fusion-client and a server that has no room at first.
#include <gmock/gmock.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/rpc/status_conversion.h"
#include "fusion/v1/optimizer.grpc.pb.h"
#include "tests/folders.h"
#include "tests/integration/process.h"

namespace fusion::testing {
namespace {

using ::testing::HasSubstr;

class FullServer : public v1::OptimizerService::Service {
 public:
  explicit FullServer(int refusals) : refusals_(refusals) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  ~FullServer() override { server_->Shutdown(); }
  grpc::Status Submit(grpc::ServerContext*, const v1::SubmitRequest*, v1::Job* job) override {
    if (++calls_ <= refusals_)
      return ToGrpcStatus(RetryLater("the server has 10000 unfinished jobs", std::chrono::milliseconds(100)));
    job->set_name("jobs/1");
    return grpc::Status::OK;
  }
  const std::string& address() const { return address_; }
  int calls() const { return calls_; }

 private:
  const int refusals_;
  std::atomic<int> calls_ = 0;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class RefusedSubmitTest : public ::testing::Test {
 protected:
  ProcessResult Submit(const FullServer& server, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {"submit", testing::SourceFolder() + "/examples/vadd.fuse",
                                          "--detach", "--server", server.address()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return client_.Run(arguments);
  }
  ClientProgram client_;
};

TEST_F(RefusedSubmitTest, WaitsAndSaysSoOnce) {
  FullServer server(3);
  const ProcessResult result = Submit(server);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "jobs/1\n");
  EXPECT_EQ(server.calls(), 4);
  EXPECT_EQ(Count(result.err, "has 10000 unfinished jobs"), 1) << result.err;
}

TEST_F(RefusedSubmitTest, TheTimeLimitEndsTheWaiting) {
  FullServer server(1000);
  const ProcessResult result = Submit(server, {"--time-limit", "0.5"});
  EXPECT_EQ(result.exit_code, 124) << result.err;
  EXPECT_THAT(result.err, HasSubstr("ends before the server has room"));
  EXPECT_LE(server.calls(), 6);
}

}  // namespace
}  // namespace fusion::testing
