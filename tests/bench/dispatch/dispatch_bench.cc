// How many tasks a server hands out and records: a real server on loopback, workers that only speak the protocol and do nothing,
// jobs of many builds each, and a client that submits meanwhile. Everything is durable as always.
//
//   dispatch_bench [--workers 1000] [--tasks 100000] [--folder DIR]       prints JSON
#include <grpcpp/create_channel.h>
#include <grpcpp/grpcpp.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "fusion/v1/optimizer.grpc.pb.h"
#include "fusion/v1/worker.grpc.pb.h"
#include "server/service/server.h"

namespace fusion {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kTasksOfJob = 1000;
constexpr int kChannels = 8;

// Calls, reports everything at once as done, calls again.
class IdleWorker {
 public:
  IdleWorker(int number, v1::WorkerService::Stub* stub, std::atomic<int64_t>* done, std::atomic<bool>* stop)
      : stub_(stub), done_(done), stop_(stop) {
    request_.set_worker(absl::StrCat("worker", number));
    request_.set_instance("1");
    request_.add_builds()->set_target(v1::CUDA);
    request_.set_free_build_slots(4);
    request_.set_wait_seconds(5);
  }
  void Call() {
    if (*stop_) {
      ended_ = true;
      return;
    }
    context_ = std::make_unique<grpc::ClientContext>();
    stub_->async()->Synchronize(context_.get(), &request_, &response_, [this](grpc::Status status) {
      if (status.ok()) Take();
      Call();
    });
  }
  bool ended() const { return ended_; }

 private:
  void Take() {
    *done_ += response_.accepted_size();
    request_.clear_tasks();
    for (const v1::Assignment& assignment : response_.assignments()) {
      v1::TaskReport* report = request_.add_tasks();
      report->set_task(assignment.task());
      report->set_fence(assignment.fence());
      report->mutable_build()->set_outcome(v1::COMPILE_ERROR);
      report->mutable_build()->set_log("nothing is built here");
    }
  }
  v1::WorkerService::Stub* const stub_;
  std::atomic<int64_t>* const done_;
  std::atomic<bool>* const stop_;
  std::unique_ptr<grpc::ClientContext> context_;
  v1::SynchronizeRequest request_;
  v1::SynchronizeResponse response_;
  std::atomic<bool> ended_ = false;
};

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

v1::SubmitRequest Request(const std::string& id) {
  v1::SubmitRequest request;
  request.mutable_source()->set_fuse("size n = 8;\nvector[n] x, y;\ninput x;\ny = square(x);\nreturn y;\n");
  request.set_request_id(id);
  return request;
}

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(share * values.size()))];
}

int Run(int workers, int tasks, const std::string& folder) {
  spdlog::set_level(spdlog::level::warn);
  const int jobs = std::max(1, tasks / kTasksOfJob);
  ServerOptions options;
  options.address = "127.0.0.1:0";
  options.data_directory = folder;
  options.runner.threads = jobs + 8;
  // Jobs whose ids of requests say so have builds; the others, which the client submits meanwhile, end at once.
  options.runner.pipeline = [&](const v1::SubmitRequest& request, const PipelineContext& context) -> absl::StatusOr<v1::JobResult> {
    if (request.request_id().rfind("builds", 0) != 0) return v1::JobResult();
    return QueueBuilds(context, kTasksOfJob);
  };
  auto server = Server::Start(options);
  if (!server.ok()) {
    std::cerr << server.status() << "\n";
    return 1;
  }
  std::vector<std::unique_ptr<v1::WorkerService::Stub>> stubs;
  for (int i = 0; i < kChannels; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetInt("channel", i);  // a connection of its own
    stubs.push_back(v1::WorkerService::NewStub(
        grpc::CreateCustomChannel((*server)->address(), grpc::InsecureChannelCredentials(), arguments)));
  }
  auto optimizer =
      v1::OptimizerService::NewStub(grpc::CreateChannel((*server)->address(), grpc::InsecureChannelCredentials()));
  const auto submit = [&](const std::string& id) {
    grpc::ClientContext context;
    v1::Job job;
    const grpc::Status status = optimizer->Submit(&context, Request(id), &job);
    if (!status.ok()) std::cerr << status.error_message() << "\n";
    return status.ok();
  };
  // All is queued before the first worker comes.
  const auto queueing = Clock::now();
  for (int i = 0; i < jobs; ++i)
    if (!submit(absl::StrCat("builds", i))) return 1;
  // Each job queues its tasks in one transaction, after its Submit was answered.
  const auto counted = [&] {
    auto statistics = (*server)->store().Statistics();
    return statistics.ok() ? statistics->queued_builds : -1;
  };
  while (counted() < int64_t{jobs} * kTasksOfJob) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const double queueing_seconds = std::chrono::duration<double>(Clock::now() - queueing).count();

  std::atomic<int64_t> done = 0;
  std::atomic<bool> stop = false;
  std::vector<std::unique_ptr<IdleWorker>> farm;
  for (int i = 0; i < workers; ++i)
    farm.push_back(std::make_unique<IdleWorker>(i, stubs[i % kChannels].get(), &done, &stop));
  const auto begin = Clock::now();
  for (auto& worker : farm) worker->Call();
  std::vector<double> submits;
  for (int i = 0; done < int64_t{jobs} * kTasksOfJob; ++i) {
    const auto start = Clock::now();
    if (!submit(absl::StrCat("other", i))) return 1;
    submits.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  stop = true;
  (*server)->Shutdown();
  for (auto& worker : farm)
    while (!worker->ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const double per_second = jobs * kTasksOfJob / seconds;
  const unsigned cores = std::thread::hardware_concurrency();
  char date[16] = "";
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  std::strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &utc));
  // As tests/bench/write_benchmarks.py takes it, and every number.
  const nlohmann::json result = {{"title", "Tasks through one server"},
                                 {"date", date},
                                 {"command", absl::StrCat("build/release/tests/dispatch_bench --workers ", workers, " --tasks ", tasks)},
                                 {"figures",
                                  {{{"what", absl::StrCat("tasks handed out and recorded, ", workers, " workers, all on ", cores, " cores")},
                                    {"value", absl::StrFormat("%.0f /s", per_second)},
                                    {"target", ""}},
                                   {{"what", "Submit meanwhile"},
                                    {"value", absl::StrFormat("p50 %.1f ms, p99 %.1f ms", 1e3 * Percentile(submits, 0.5),
                                                              1e3 * Percentile(submits, 0.99))},
                                    {"target", "p99 10 ms"}}}},
                                 {"workers", workers},
                                 {"tasks", jobs * kTasksOfJob},
                                 {"queueing_seconds", queueing_seconds},
                                 {"seconds", seconds},
                                 {"tasks_per_second", per_second},
                                 {"submits", submits.size()},
                                 {"submit_p50_seconds", Percentile(submits, 0.5)},
                                 {"submit_p99_seconds", Percentile(submits, 0.99)},
                                 {"cores", cores}};
  std::cout << result.dump(1) << "\n";
  return 0;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  CLI::App app("Tasks handed out and recorded per second.", "dispatch_bench");
  int workers = 1000, tasks = 100000;
  std::string folder;
  app.add_option("--workers", workers)->check(CLI::Range(1, 10000))->capture_default_str();
  app.add_option("--tasks", tasks)->check(CLI::Range(1, 10000000))->capture_default_str();
  app.add_option("--folder", folder, "for the database; on a disk, not in memory (default: a temporary one)");
  CLI11_PARSE(app, argc, argv);
  std::string made;
  if (folder.empty()) {
    made = "/var/tmp/fusion-dispatch-XXXXXX";
    if (mkdtemp(made.data()) == nullptr) return 1;
    folder = made;
  }
  const int code = fusion::Run(workers, tasks, folder);
  if (!made.empty()) std::filesystem::remove_all(made);
  return code;
}
