// What the people who run a farm see of it: metrics, log lines, traces, copies of the database.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "tests/integration/http_connection.h"
#include "tests/integration/process.h"
#include "tests/trace_events.h"

namespace fusion::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;

constexpr char kSource[] =
    "size n = 40003;\nvector[n] x, y, z, s, r;\nscalar a;\ninput a, x, y, z;\n"
    "s = axpy(a, x, y);\nr = vadd(s, z);\nreturn r;\n";
constexpr char kTraceId[] = "4bf92f3577b34da6a3ce929d0e0e4736";

// Every line is a comment of the two kinds or a sample, samples follow their TYPE, and histograms are
// cumulative.
void CheckExposition(const std::string& text) {
  const std::regex sample(
      R"(([a-zA-Z_][a-zA-Z0-9_]*)(\{([a-zA-Z_]+="([^"\\]|\\.)*",?)*\})? (NaN|[+-]Inf|-?[0-9.e+-]+))");
  std::istringstream lines(text);
  std::string name, type;
  std::set<std::string> names, series;
  for (std::string line; std::getline(lines, line);) {
    SCOPED_TRACE(line);
    std::smatch match;
    if (line.rfind("# HELP ", 0) == 0) {
      name = WordAfter(line, "# HELP ", " ");
      EXPECT_TRUE(names.insert(name).second) << "one block for each name";
    } else if (line.rfind("# TYPE ", 0) == 0) {
      EXPECT_EQ(WordAfter(line, "# TYPE ", " "), name);
      type = line.substr(line.rfind(' ') + 1);
      EXPECT_TRUE(type == "counter" || type == "gauge" || type == "histogram");
      if (type == "counter") {
        EXPECT_TRUE(name.ends_with("_total"));
      }
    } else {
      ASSERT_TRUE(std::regex_match(line, match, sample));
      const std::string suffix = match[1].str().substr(std::min(name.size(), match[1].str().size()));
      EXPECT_EQ(match[1].str().rfind(name, 0), 0u);
      EXPECT_TRUE(type == "histogram" ? suffix == "_bucket" || suffix == "_sum" || suffix == "_count"
                                      : suffix.empty());
      EXPECT_TRUE(series.insert(match[1].str() + match[2].str()).second) << "a series stands once";
    }
  }
  EXPECT_GT(series.size(), 20u);
}

class OperationsTest : public ::testing::Test {
 protected:
  void SetUp() override { file_ = client_.Write("two_calls.fuse", kSource); }
  void StartServer() {
    server_ = std::make_unique<ServerProcess>(
        client_, "127.0.0.1:0",
        std::vector<std::string>{"--metrics-listen", "127.0.0.1:0", "--log-format", "json"});
    address_ = server_->address();
    pages_ = WordAfter(server_->err(), "metrics at http://", "/");
  }
  void StartWorker() {
    worker_ =
        std::make_unique<Process>("fusion-worker",
                                  std::vector<std::string>{"--server", address_, "--target", "host", "--name",
                                                           "alpha", "--metrics-listen", "127.0.0.1:0",
                                                           "--log-format", "json", "--log-level", "debug"},
                                  client_.environment());
    ASSERT_TRUE(worker_->WaitForError("/metrics")) << worker_->err();
    worker_pages_ = WordAfter(worker_->err(), "metrics at http://", "/");
  }
  // The name of a job that succeeded.
  std::string Submit() {
    client_.SetEnvironment("TRACEPARENT", std::string("00-") + kTraceId + "-00f067aa0ba902b7-01");
    const ProcessResult result = client_.Run(
        {"submit", file_, "--target", "host", "--candidates", "2", "--server", address_, "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.exit_code == 0 ? json::parse(result.out)["job"].get<std::string>() : "";
  }
  void StopServer() {
    server_->Signal(SIGTERM);
    EXPECT_EQ(server_->Wait().exit_code, 0);
  }
  ProcessResult Maintain(const std::vector<std::string>& arguments) {
    return Process("fusion-server", arguments, client_.environment()).Wait();
  }
  std::string Data() const { return client_.folder() + "/server"; }

  ClientProgram client_;
  std::string file_, address_, pages_, worker_pages_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<Process> worker_;
};

TEST_F(OperationsTest, MetricsLogsAndTheTraceOfAJob) {
  StartServer();
  EXPECT_THAT(HttpGet(pages_, "/healthz"), HasSubstr("200 OK"));
  EXPECT_THAT(HttpGet(pages_, "/readyz"), HasSubstr("200 OK"));
  StartWorker();
  const std::string job = Submit();
  ASSERT_NE(job, "");

  const std::string answer = HttpGet(pages_, "/metrics");
  const std::string metrics = answer.substr(answer.find("\r\n\r\n") + 4);
  CheckExposition(metrics);
  for (const char* line :
       {"\nfusion_jobs_submitted_total 1\n", "\nfusion_jobs_ended_total{state=\"SUCCEEDED\"} 1\n",
        "\nfusion_jobs_ended_total{state=\"FAILED\"} 0\n", "\nfusion_workers_connected 1\n",
        "\nfusion_devices{health=\"ok\"} 1\n", "\nfusion_tasks_queued{kind=\"BUILD\"} 0\n",
        "\nfusion_tasks_running{kind=\"TIME\"} 0\n", "\nfusion_leases_expired_total 0\n",
        "\nfusion_worker_lost_total 0\n", "\nfusion_tasks_ended_total{kind=\"TIME\",outcome=\"DONE\"} ",
        "\nfusion_task_queue_seconds_count{kind=\"BUILD\"} ", "\nfusion_build_seconds_count{outcome=\"OK\"} ",
        "\nfusion_stage_seconds_count{stage=\"search\"} 1\n",
        "\nfusion_rpc_seconds_count{method=\"OptimizerService/Submit\",code=\"OK\"} 1\n",
        "\nfusion_build_cache_misses_total ", "\nfusion_store_bytes ", "\nprocess_resident_memory_bytes "})
    EXPECT_THAT(metrics, HasSubstr(line));
  // What is counted is what is stored.
  const std::string claimed = WordAfter(metrics, "\nfusion_tasks_claimed_total{kind=\"BUILD\"} ", "\n");
  EXPECT_EQ(WordAfter(metrics, "\nfusion_tasks_ended_total{kind=\"BUILD\",outcome=\"DONE\"} ", "\n"),
            claimed);
  EXPECT_EQ(WordAfter(metrics, "\nfusion_build_cache_misses_total ", "\n"), claimed);

  const std::string of_worker = HttpGet(worker_pages_, "/metrics");
  CheckExposition(of_worker.substr(of_worker.find("\r\n\r\n") + 4));
  EXPECT_THAT(of_worker, HasSubstr("\nfusion_worker_tasks_ended_total{kind=\"BUILD\",outcome=\"OK\"} " +
                                   claimed + "\n"));
  EXPECT_THAT(of_worker, HasSubstr("\nfusion_worker_tasks_running{kind=\"BUILD\"} 0\n"));
  EXPECT_THAT(of_worker, HasSubstr("\nfusion_worker_connected 1\n"));
  EXPECT_THAT(of_worker, HasSubstr("\nfusion_worker_device_healthy{device="));
  EXPECT_THAT(HttpGet(worker_pages_, "/healthz"), HasSubstr("200 OK"));
  EXPECT_THAT(HttpGet(worker_pages_, "/readyz"), HasSubstr("200 OK"));

  const ProcessResult traced = client_.Run({"jobs", "trace", job, "--server", address_});
  ASSERT_EQ(traced.exit_code, 0) << traced.err;
  const json trace = json::parse(traced.out);
  CheckTraceEvents(trace["traceEvents"]);
  EXPECT_EQ(trace["otherData"]["trace_id"], kTraceId);
  std::set<std::string> names, processes;
  for (const json& event : trace["traceEvents"]) {
    names.insert(event["name"]);
    if (event["name"] == "process_name") processes.insert(event["args"]["name"]);
    if (event["name"] == "build") {
      EXPECT_EQ(event["args"]["outcome"], "DONE");
    }
  }
  EXPECT_THAT(names, IsSupersetOf({"search", "codegen", "build round 1", "measure round 1", "build", "time",
                                   "build waits", "time waits"}));
  EXPECT_EQ(processes, (std::set<std::string>{"server", "queue", "worker alpha"}));
  const std::string file = client_.folder() + "/trace.json";
  EXPECT_EQ(client_.Run({"jobs", "trace", job, "--output", file, "--server", address_}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(file));
  EXPECT_EQ(client_.Run({"jobs", "trace", "jobs/none", "--server", address_}).exit_code, 2);

  // Every line of both programs is an object; those of the job name it and its trace.
  StopServer();
  worker_->Signal(SIGKILL);
  worker_->Wait();
  bool submitted = false, ended = false;
  std::istringstream lines(server_->err());
  for (std::string line; std::getline(lines, line);) {
    ASSERT_TRUE(json::accept(line)) << line;
    const json entry = json::parse(line);
    EXPECT_EQ(entry["program"], "fusion-server");
    EXPECT_TRUE(std::regex_match(entry["time"].get<std::string>(),
                                 std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)")));
    const std::string message = entry["message"];
    if (message.rfind(job, 0) != 0) continue;
    EXPECT_EQ(entry["job"], job);
    EXPECT_EQ(entry["trace_id"], kTraceId) << line;
    submitted = submitted || message.find("submitted") != std::string::npos;
    ended = ended || message.find("SUCCEEDED") != std::string::npos;
  }
  EXPECT_TRUE(submitted && ended) << server_->err();
  std::istringstream worker_lines(worker_->err());
  bool task = false;
  for (std::string line; std::getline(worker_lines, line);) {
    ASSERT_TRUE(json::accept(line)) << line;
    EXPECT_EQ(json::parse(line)["worker"], "alpha");
    const json entry = json::parse(line);
    if (!entry.contains("task")) continue;
    task = true;
    EXPECT_EQ(entry.value("trace_id", ""), kTraceId) << line;
  }
  EXPECT_TRUE(task) << worker_->err();
}

TEST_F(OperationsTest, ABackupIsRestored) {
  StartServer();
  const ProcessResult empty = client_.Run({"backup", "--server", address_, "--json"});
  ASSERT_EQ(empty.exit_code, 0) << empty.err;
  const std::string before = json::parse(empty.out)["path"];
  EXPECT_GT(json::parse(empty.out)["bytes"], 0);
  StartWorker();
  const std::string job = Submit();
  const ProcessResult later =
      Maintain({"backup", "--data", Data(), "--output", client_.folder() + "/later.db"});
  ASSERT_EQ(later.exit_code, 0) << later.err;
  EXPECT_THAT(later.out, HasSubstr("1 jobs"));

  const ProcessResult refused = Maintain({"restore", "--data", Data(), "--input", before});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("in use"));
  StopServer();

  const ProcessResult restored = Maintain({"restore", "--data", Data(), "--input", before});
  ASSERT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_THAT(restored.out, HasSubstr("0 jobs"));
  EXPECT_THAT(restored.out, HasSubstr(".before-restore-"));
  EXPECT_EQ(Maintain({"check", "--data", Data()}).exit_code, 0);
  StartServer();
  EXPECT_EQ(client_.Run({"jobs", "show", job, "--server", address_}).exit_code, 2)
      << "it came after the backup";
  StopServer();
  ASSERT_EQ(Maintain({"restore", "--data", Data(), "--input", client_.folder() + "/later.db"}).exit_code, 0);
  StartServer();
  const ProcessResult shown = client_.Run({"jobs", "show", job, "--server", address_, "--json"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
}

TEST_F(OperationsTest, BadUsageSaysWhatToDo) {
  const ProcessResult bad =
      Maintain({"--metrics-listen", "nonsense", "--data", Data(), "--listen", "127.0.0.1:0"});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.err, HasSubstr("127.0.0.1:9464"));
  EXPECT_EQ(Maintain({"--log-format", "xml"}).exit_code, 2);
  EXPECT_EQ(Maintain({"restore", "--data", Data()}).exit_code, 2);
  const ProcessResult none = Maintain({"check", "--data", Data() + "/none"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("there is no database"));
  EXPECT_EQ(
      Maintain({"backup", "--data", Data() + "/none", "--output", client_.folder() + "/x.db"}).exit_code, 2);
}

}  // namespace
}  // namespace fusion::testing
