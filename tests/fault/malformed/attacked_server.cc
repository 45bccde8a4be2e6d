#include "tests/fault/malformed/attacked_server.h"

#include <google/protobuf/stubs/logging.h>
#include <grpcpp/create_channel.h>

#include <algorithm>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/rpc/chunks.h"
#include "base/temporary_directory.h"
#include "server/upkeep/data_directory.h"
#include "tests/fault/long_form.h"
#include "tests/generic_call.h"

namespace fusion {
namespace {

using grpc::StatusCode;

constexpr char kSubmit[] = "/fusion.v1.OptimizerService/Submit";

// What the protocol documents for callers. DEADLINE_EXCEEDED is not among them: an attack has to be answered.
const std::set<StatusCode>& TypedStatuses() {
  static const std::set<StatusCode> statuses = {
      StatusCode::INVALID_ARGUMENT,  StatusCode::NOT_FOUND,          StatusCode::ALREADY_EXISTS,
      StatusCode::PERMISSION_DENIED, StatusCode::RESOURCE_EXHAUSTED, StatusCode::FAILED_PRECONDITION,
      StatusCode::OUT_OF_RANGE,      StatusCode::DATA_LOSS,          StatusCode::UNIMPLEMENTED};
  return statuses;
}

absl::StatusOr<v1::JobResult> BuildOneKernel(const v1::SubmitRequest& request,
                                             const PipelineContext& context) {
  v1::JobResult result;
  if (request.request_id().rfind("honest", 0) != 0) return result;
  v1::BuildTask task;
  task.set_key(BlobDigest(context.job));
  task.set_target(v1::HOST);
  task.set_arch("x86-64");
  task.set_source("int kernel;");
  absl::StatusOr<std::vector<BuildOutcome>> built =
      context.dispatcher.Build(context.job, {task}, context.cancellation);
  if (!built.ok()) return built.status();
  result.set_builds((*built)[0].result.outcome() == v1::OK ? 1 : 0);
  return result;
}

}  // namespace

void AttackedServer::SetUp() {
  google::protobuf::SetLogHandler(nullptr);  // of bytes that are no text, said many times
  auto directory = TemporaryDirectory::Create();
  ASSERT_TRUE(directory.ok());
  directory_ = *std::move(directory);
  ServerOptions options;
  options.address = "127.0.0.1:0";
  options.data_directory = directory_->path();
  options.runner.pipeline = BuildOneKernel;
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(options);
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, 1 << 20);
  channel_ = grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(), arguments);
}

void AttackedServer::TearDown() {
  if (!server_) return;
  ExpectHonestWork();
  for (const auto& [name, count] : statuses_) RecordProperty(name, count);
  std::string summary;
  for (const auto& [name, count] : statuses_) absl::StrAppend(&summary, " ", name, " ", count);
  int attacks = 0;
  for (const auto& [name, count] : statuses_) attacks += count;
  if (!summary.empty()) {
    std::printf("answers:%s\n", summary.c_str());
    TellFigure("attacks", attacks);
    TellFigure("answers without a proper status", untyped_);
  }
  channel_.reset();
  server_.reset();
  absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore(DatabasePath(directory_->path()));
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_TRUE((*store)->CheckIntegrity().ok()) << (*store)->CheckIntegrity();
}

grpc::Status AttackedServer::Call(const std::string& method, const std::vector<std::string>& messages,
                                  std::chrono::milliseconds patience, std::vector<std::string>* answers) {
  return CallMethod(channel_, method, messages, patience, answers);
}

void AttackedServer::Attack(const std::string& method, const std::vector<std::string>& messages,
                            bool decodable, const std::string& what) {
  const grpc::Status status = Call(method, messages);
  const std::string name =
      status.ok() ? "OK" : absl::StatusCodeToString(static_cast<absl::StatusCode>(status.error_code()));
  ++statuses_[name];
  if (status.ok()) return;
  const std::string described = absl::StrCat(method, " (", what, "): ", name, " ",
                                             absl::CHexEscape(status.error_message().substr(0, 300)));
  // gRPC 1.51 says it for the callback API, without a word.
  if (!decodable &&
      (status.error_code() == StatusCode::INTERNAL || status.error_code() == StatusCode::UNIMPLEMENTED))
    return;
  EXPECT_FALSE(status.error_message().empty()) << described;
  EXPECT_TRUE(TypedStatuses().contains(status.error_code())) << described;
  if (status.error_message().empty() || !TypedStatuses().contains(status.error_code())) ++untyped_;
}

v1::SubmitRequest AttackedServer::Request(const std::string& id) {
  v1::SubmitRequest request;
  request.set_request_id(id);
  request.set_target(v1::HOST);
  request.mutable_source()->set_fuse(
      "size n = 1000;\nvector[n] x, y, z;\ninput x, y;\nz = vadd(x, y);\nreturn z;\n");
  return request;
}

v1::SynchronizeRequest AttackedServer::Worker(const std::string& name, const std::string& instance) {
  v1::SynchronizeRequest request;
  request.set_worker(name);
  request.set_instance(instance);
  v1::BuildCapability* build = request.add_builds();
  build->set_target(v1::HOST);
  build->set_arch("x86-64");
  return request;
}

v1::SynchronizeResponse AttackedServer::Synchronize(const v1::SynchronizeRequest& request) {
  return Ask<v1::SynchronizeResponse>(kSynchronize, request);
}

v1::Assignment AttackedServer::TakeHonestTask(v1::Job* job) {
  const std::string id = absl::StrCat("honest ", ++honest_jobs_);
  *job = Ask<v1::Job>(kSubmit, Request(id));
  v1::SynchronizeRequest worker = Worker("honest", "1");
  worker.set_free_build_slots(1);
  worker.set_wait_seconds(1);
  for (int tries = 0; tries < 60; ++tries) {
    const v1::SynchronizeResponse answer = Synchronize(worker);
    for (const v1::Assignment& assignment : answer.assignments())
      if (assignment.build().key() == BlobDigest(job->name())) return assignment;
  }
  ADD_FAILURE() << "the honest worker was not given the task of " << job->name();
  return {};
}

void AttackedServer::FinishHonestTask(const v1::Job& job, const v1::Assignment& assignment) {
  const std::string binary = "binary of " + job.name();
  v1::Chunk chunk;
  chunk.set_digest(BlobDigest(binary));
  chunk.set_total_bytes(static_cast<int64_t>(binary.size()));
  chunk.set_data(binary);
  const grpc::Status written = Call("/fusion.v1.WorkerService/WriteBlob", {chunk.SerializeAsString()});
  EXPECT_TRUE(written.ok()) << written.error_message();
  v1::SynchronizeRequest done = Worker("honest", "1");
  v1::TaskReport* report = done.add_tasks();
  report->set_task(assignment.task());
  report->set_fence(assignment.fence());
  report->mutable_build()->set_outcome(v1::OK);
  report->mutable_build()->set_binary(BlobDigest(binary));
  EXPECT_THAT(Synchronize(done).accepted(), ::testing::ElementsAre(assignment.task()));
  v1::WatchJobRequest watch;
  watch.set_name(job.name());
  std::vector<std::string> events;
  const grpc::Status status = Call("/fusion.v1.OptimizerService/WatchJob", {watch.SerializeAsString()},
                                   std::chrono::seconds(30), &events);
  EXPECT_TRUE(status.ok()) << status.error_message();
  v1::JobEvent last;
  ASSERT_TRUE(!events.empty() && last.ParseFromString(events.back()));
  EXPECT_EQ(last.finished().state(), v1::SUCCEEDED) << last.ShortDebugString();
  EXPECT_EQ(last.finished().result().builds(), 1) << "the honest worker's result was not taken";
}

void AttackedServer::ExpectHonestWork() {
  v1::Job job;
  const v1::Assignment assignment = TakeHonestTask(&job);
  if (!assignment.task().empty()) FinishHonestTask(job, assignment);
}

}  // namespace fusion
