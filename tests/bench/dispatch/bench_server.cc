#include "tests/bench/dispatch/bench_server.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/rpc/server.h"
#include "tests/bench/dispatch/statement_counter.h"

namespace fusion {
namespace {

// The job's tasks and nothing else.
absl::StatusOr<v1::JobResult> QueueBuilds(const PipelineContext& context, int count) {
  std::vector<v1::BuildTask> tasks(count);
  for (int i = 0; i < count; ++i) {
    tasks[i].set_key(absl::StrCat(context.job, "/", i));
    tasks[i].set_target(v1::CUDA);
    tasks[i].set_arch("sm_90");
    tasks[i].set_source(std::string(2000, 's'));
  }
  auto built = context.dispatcher.Build(context.job, tasks, context.cancellation);
  if (!built.ok()) return built.status();
  return v1::JobResult();
}

}  // namespace

v1::SubmitRequest BenchRequest(const std::string& id) {
  v1::SubmitRequest request;
  request.mutable_source()->set_fuse("size n = 8;\nvector[n] x, y;\ninput x;\ny = square(x);\nreturn y;\n");
  request.set_request_id(id);
  return request;
}

int Serve(const std::string& folder, int jobs, bool count) {
  spdlog::set_level(spdlog::level::warn);
  if (count) CountStatements();
  ServerOptions options;
  options.address = "127.0.0.1:0";
  options.data_directory = folder;
  options.runner.threads = jobs + 8;
  // Jobs whose ids of requests say so have builds; the others, which the client submits meanwhile, end at
  // once.
  options.runner.pipeline = [&](const v1::SubmitRequest& request,
                                const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    if (request.request_id().rfind("builds", 0) != 0) return v1::JobResult();
    return QueueBuilds(context, kTasksOfJob);
  };
  auto server = Server::Start(options);
  if (!server.ok()) {
    std::cerr << server.status() << "\n";
    return 1;
  }
  std::cout << (*server)->address() << std::endl;
  // Each job queues its tasks after its Submit was answered.
  const auto queued = [&] {
    auto statistics = (*server)->store().Statistics();
    return statistics.ok() ? statistics->queued_builds : -1;
  };
  while (queued() < int64_t{jobs} * kTasksOfJob) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const auto before = CountedStatements();
  std::cout << "queued" << std::endl;
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  for (const auto& [text, times] : CountedStatements()) {
    const auto earlier = before.find(text);
    const int64_t meanwhile = times - (earlier == before.end() ? 0 : earlier->second);
    if (meanwhile > 0)
      std::cout << meanwhile << " " << absl::StrJoin(absl::StrSplit(text, '\n'), " ") << "\n";
  }
  (*server)->Shutdown();
  return 0;
}

}  // namespace fusion
