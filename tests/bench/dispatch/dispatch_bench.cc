// How many tasks a server hands out and records: a real server on loopback, workers that only speak the
// protocol and do nothing, jobs of many builds each, and somebody who submits meanwhile; three processes, so
// that what each costs is known. Everything is durable as always.
//
//   dispatch_bench [--workers 1000] [--tasks 100000] [--folder DIR] [--statements]       prints JSON
#include <grpcpp/create_channel.h>
#include <grpcpp/grpcpp.h>
#include <stdlib.h>
#include <unistd.h>

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

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "fusion/v1/optimizer.grpc.pb.h"
#include "tests/bench/dispatch/bench_server.h"
#include "tests/bench/dispatch/forked_process.h"
#include "tests/bench/dispatch/idle_worker.h"
#include "tests/bench/dispatch/submitter.h"

namespace fusion {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr int kChannels = 8;

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(share * values.size()))];
}

// What happened between the first claim and the last result.
struct Dispatched {
  double queueing_seconds = 0;
  double seconds = 0;
  ProcessUsage queueing, server, workers, submitter;
  std::vector<double> submits;       // seconds
  json statements = json::object();  // by text, for each task
};

std::vector<std::unique_ptr<v1::WorkerService::Stub>> Connect(const std::string& address) {
  std::vector<std::unique_ptr<v1::WorkerService::Stub>> stubs;
  for (int i = 0; i < kChannels; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetInt("channel", i);  // a connection of its own
    stubs.push_back(v1::WorkerService::NewStub(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments)));
  }
  return stubs;
}

absl::StatusOr<Dispatched> Dispatch(int workers, int jobs, const std::string& folder, bool statements) {
  Dispatched result;
  std::vector<std::string> arguments{"--serve", "--folder", folder, "--tasks",
                                     absl::StrCat(jobs * kTasksOfJob)};
  if (statements) arguments.push_back("--statements");
  ForkedProcess server(arguments);
  const auto address = server.ReadLine();
  if (!address) return absl::UnavailableError("the server did not start");

  // All is queued before the first worker comes.
  const auto queueing = Clock::now();
  auto optimizer =
      v1::OptimizerService::NewStub(grpc::CreateChannel(*address, grpc::InsecureChannelCredentials()));
  for (int i = 0; i < jobs; ++i) {
    grpc::ClientContext context;
    v1::Job job;
    const grpc::Status status = optimizer->Submit(&context, BenchRequest(absl::StrCat("builds", i)), &job);
    if (!status.ok()) return absl::UnavailableError(status.error_message());
  }
  if (!server.ReadLine()) return absl::UnavailableError("the server has ended");
  result.queueing_seconds = std::chrono::duration<double>(Clock::now() - queueing).count();
  result.queueing = UsageOf(server.id());

  const int64_t wanted = int64_t{jobs} * kTasksOfJob;
  std::atomic<int64_t> done = 0;
  std::atomic<bool> stop = false;
  const auto stubs = Connect(*address);
  std::vector<std::unique_ptr<IdleWorker>> farm;
  for (int i = 0; i < workers; ++i)
    farm.push_back(std::make_unique<IdleWorker>(i, stubs[i % kChannels].get(), &done, &stop));
  ForkedProcess submitter({"--submit", *address});
  const ProcessUsage own = UsageOf(getpid());
  const auto begin = Clock::now();
  for (auto& worker : farm) worker->Call();
  while (done < wanted) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  result.workers = UsageOf(getpid()) - own;
  result.server = UsageOf(server.id()) - result.queueing;
  result.submitter = UsageOf(submitter.id());
  submitter.CloseInput();
  while (auto line = submitter.ReadLine()) {
    double took = 0;
    if (absl::SimpleAtod(*line, &took)) result.submits.push_back(took);
  }
  stop = true;
  server.CloseInput();
  while (auto line = server.ReadLine()) {
    const size_t space = line->find(' ');
    result.statements[line->substr(space + 1)] = std::stod(*line) / static_cast<double>(wanted);
  }
  for (auto& worker : farm)
    while (!worker->ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return result;
}

// Of each task.
json UsageJson(const ProcessUsage& usage, int tasks) {
  return {{"user_microseconds", 1e6 * usage.user_seconds / tasks},
          {"system_microseconds", 1e6 * usage.system_seconds / tasks},
          {"context_switches", static_cast<double>(usage.context_switches) / tasks},
          {"write_calls", static_cast<double>(usage.write_calls) / tasks},
          {"written_bytes", static_cast<double>(usage.written_bytes) / tasks}};
}

double Microseconds(const ProcessUsage& usage, int tasks) {
  return 1e6 * (usage.user_seconds + usage.system_seconds) / tasks;
}

int Run(int workers, int jobs, const std::string& folder, bool statements) {
  const int tasks = jobs * kTasksOfJob;
  absl::StatusOr<Dispatched> dispatched = Dispatch(workers, jobs, folder, statements);
  if (!dispatched.ok()) {
    std::cerr << dispatched.status() << "\n";
    return 1;
  }
  const double per_second = tasks / dispatched->seconds;
  const double p50 = Percentile(dispatched->submits, 0.5), p99 = Percentile(dispatched->submits, 0.99);
  const unsigned cores = std::thread::hardware_concurrency();
  char date[16] = "";
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  std::strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &utc));
  const auto figure = [](const std::string& what, const std::string& value, const std::string& target) {
    return json{{"what", what}, {"value", value}, {"target", target}};
  };
  // As tests/bench/write_benchmarks.py takes it, and every number.
  json result = {
      {"title", "Tasks through one server"},
      {"date", date},
      {"command", absl::StrCat("build/release/tests/dispatch_bench --workers ", workers, " --tasks ", tasks)},
      {"figures",
       {figure(absl::StrCat("tasks handed out and recorded, ", workers, " workers, all on ", cores, " cores"),
               absl::StrFormat("%.0f /s", per_second), "3000 /s"),
        figure("Submit meanwhile", absl::StrFormat("p50 %.1f ms, p99 %.1f ms", 1e3 * p50, 1e3 * p99),
               "p99 10 ms"),
        figure("processor time of a task: the server, the bench's workers",
               absl::StrFormat("%.0f us, %.0f us", Microseconds(dispatched->server, tasks),
                               Microseconds(dispatched->workers, tasks)),
               "")}},
      {"workers", workers},
      {"tasks", tasks},
      {"queueing_seconds", dispatched->queueing_seconds},
      {"seconds", dispatched->seconds},
      {"tasks_per_second", per_second},
      {"submits", dispatched->submits.size()},
      {"submit_p50_seconds", p50},
      {"submit_p90_seconds", Percentile(dispatched->submits, 0.9)},
      {"submit_p99_seconds", p99},
      {"of_each_task",
       {{"server_queueing", UsageJson(dispatched->queueing, tasks)},
        {"server", UsageJson(dispatched->server, tasks)},
        {"workers", UsageJson(dispatched->workers, tasks)},
        {"submitter", UsageJson(dispatched->submitter, tasks)}}},
      {"cores", cores}};
  if (statements) result["statements_of_each_task"] = dispatched->statements;
  std::cout << result.dump(1) << "\n";
  return 0;
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  CLI::App app("Tasks handed out and recorded per second.", "dispatch_bench");
  int workers = 1000, tasks = 100000;
  std::string folder, address;
  bool serve = false, statements = false;
  app.add_option("--workers", workers)->check(CLI::Range(1, 10000))->capture_default_str();
  app.add_option("--tasks", tasks)->check(CLI::Range(1, 10000000))->capture_default_str();
  app.add_option("--folder", folder, "for the database; on a disk, not in memory (default: a temporary one)");
  app.add_flag("--statements", statements, "count SQLite's statements, which takes time itself");
  app.add_flag("--serve", serve, "")->group("");
  app.add_option("--submit", address, "")->group("");
  CLI11_PARSE(app, argc, argv);
  const int jobs = std::max(1, tasks / fusion::kTasksOfJob);
  if (serve) return fusion::Serve(folder, jobs, statements);
  if (!address.empty()) return fusion::SubmitUntilStopped(address);
  std::string made;
  if (folder.empty()) {
    made = "/var/tmp/fusion-dispatch-XXXXXX";
    if (mkdtemp(made.data()) == nullptr) return 1;
    folder = made;
  }
  const int code = fusion::Run(workers, jobs, folder, statements);
  if (!made.empty()) std::filesystem::remove_all(made);
  return code;
}
