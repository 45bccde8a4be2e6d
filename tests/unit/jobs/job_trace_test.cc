#include "server/jobs/job_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/trace_events.h"

namespace fusion {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

Timestamp AtSeconds(double seconds) {
  return Timestamp(std::chrono::microseconds(static_cast<int64_t>(seconds * 1e6)));
}

JobRecord Job(JobState state = JobState::kSucceeded) {
  JobRecord job;
  job.id = "jobs/1";
  job.state = state;
  job.graph_name = "bicgk";
  job.created = AtSeconds(100);
  job.updated = AtSeconds(110);
  return job;
}

AttemptRecord Attempt(int64_t fence, const std::string& worker, double queued, double claimed, double ended,
                      const std::string& how) {
  AttemptRecord attempt;
  attempt.fence = fence;
  attempt.worker = worker;
  attempt.instance = worker + " process";
  attempt.queued = AtSeconds(queued);
  attempt.claimed = AtSeconds(claimed);
  attempt.ended = how.empty() ? Timestamp() : AtSeconds(ended);
  attempt.ended_how = how;
  return attempt;
}

TracedTask Task(const std::string& id, TaskKind kind, std::vector<AttemptRecord> attempts,
                TaskState state = TaskState::kDone) {
  TracedTask task;
  task.id = id;
  task.kind = kind;
  task.state = state;
  task.requirements = {"CUDA", "sm_90", kind == TaskKind::kTime ? "GPU-1" : ""};
  task.created = attempts.empty() ? AtSeconds(101) : attempts[0].queued;
  task.updated = AtSeconds(109);
  task.attempts = std::move(attempts);
  return task;
}

json Trace(const JobRecord& job, const JobTraceRecord& record) {
  const json trace = json::parse(TraceJson(job, record, AtSeconds(120)));
  testing::CheckTraceEvents(trace["traceEvents"]);
  return trace;
}

std::vector<json> Spans(const json& trace, const std::string& name) {
  std::vector<json> spans;
  for (const json& event : trace["traceEvents"])
    if (event["ph"] != "M" && event["name"] == name) spans.push_back(event);
  return spans;
}

std::set<std::string> Processes(const json& trace) {
  std::set<std::string> names;
  for (const json& event : trace["traceEvents"])
    if (event["name"] == "process_name") names.insert(event["args"]["name"]);
  return names;
}

std::string ThreadName(const json& trace, const json& span) {
  for (const json& event : trace["traceEvents"])
    if (event["name"] == "thread_name" && event["pid"] == span["pid"] && event["tid"] == span["tid"])
      return event["args"]["name"];
  return "";
}

TEST(JobTraceTest, AJobWithStagesTasksAndWorkers) {
  JobTraceRecord record;
  record.traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  record.stages = {{1, "search", AtSeconds(100.5), AtSeconds(101)},
                   {2, "build round 1", AtSeconds(101), AtSeconds(104)}};
  record.tasks = {Task("tasks/a", TaskKind::kBuild, {Attempt(1, "alpha", 101, 102, 103, "DONE")}),
                  Task("tasks/b", TaskKind::kBuild, {Attempt(1, "alpha", 101, 102, 104, "DONE")}),
                  Task("tasks/c", TaskKind::kTime, {Attempt(1, "beta", 104, 105, 106, "DONE")})};
  const json trace = Trace(Job(), record);
  EXPECT_EQ(trace["otherData"]["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(trace["otherData"]["job"], "jobs/1");
  EXPECT_EQ(trace["otherData"]["begin_micros_since_1970"], 100000000);
  EXPECT_THAT(Processes(trace), UnorderedElementsAre("server", "queue", "worker alpha", "worker beta"));

  const json job = Spans(trace, "jobs/1").at(0);
  EXPECT_EQ(job["ts"], 0);
  EXPECT_EQ(job["dur"], 10000000);
  EXPECT_EQ(job["args"]["state"], "SUCCEEDED");
  const json search = Spans(trace, "search").at(0);
  EXPECT_EQ(search["ts"], 500000);
  EXPECT_EQ(search["dur"], 500000);
  EXPECT_EQ(ThreadName(trace, search), "pipeline");

  const std::vector<json> builds = Spans(trace, "build");
  ASSERT_EQ(builds.size(), 2u);
  EXPECT_EQ(builds[0]["args"]["task"], "tasks/a");
  EXPECT_EQ(builds[0]["args"]["fence"], 1);
  EXPECT_EQ(builds[0]["args"]["attempt"], 1);
  EXPECT_EQ(builds[0]["args"]["outcome"], "DONE");
  EXPECT_EQ(builds[0]["ts"], 2000000);
  EXPECT_EQ(ThreadName(trace, builds[0]), "build");
  EXPECT_EQ(ThreadName(trace, builds[1]), "build 2") << "two at a time are on tracks of their own";
  EXPECT_EQ(ThreadName(trace, Spans(trace, "time").at(0)), "time GPU-1");
  EXPECT_EQ(Spans(trace, "build waits").size(), 2u);
  EXPECT_EQ(Spans(trace, "time waits").at(0)["dur"], 1000000);
}

TEST(JobTraceTest, EveryAttemptIsThereAndLostLeasesAreMarked) {
  JobTraceRecord record;
  record.tasks = {
      Task("tasks/a", TaskKind::kBuild,
           {Attempt(1, "alpha", 101, 102, 103, "LEASE_EXPIRED"),
            Attempt(2, "beta", 103, 104, 105, "WORKER_FAILED"), Attempt(3, "beta", 105, 107, 108, "DONE")})};
  const json trace = Trace(Job(), record);
  std::vector<std::string> outcomes;
  for (const json& build : Spans(trace, "build")) outcomes.push_back(build["args"]["outcome"]);
  EXPECT_THAT(outcomes, ElementsAre("LEASE_EXPIRED", "WORKER_FAILED", "DONE"));
  EXPECT_EQ(Spans(trace, "build waits").size(), 3u);
  const std::vector<json> lost = Spans(trace, "lease lost");
  ASSERT_EQ(lost.size(), 1u);
  EXPECT_EQ(lost[0]["ph"], "i");
  EXPECT_EQ(lost[0]["ts"], 3000000);
  EXPECT_EQ(lost[0]["pid"], Spans(trace, "build")[0]["pid"]);
}

TEST(JobTraceTest, WhatHasNotEndedReachesToNow) {
  JobTraceRecord record;
  record.stages = {{1, "search", AtSeconds(101), Timestamp()},
                   {2, "search", AtSeconds(105), AtSeconds(106)},
                   {3, "codegen", AtSeconds(106), Timestamp()}};
  record.tasks = {
      Task("tasks/a", TaskKind::kBuild, {Attempt(1, "alpha", 107, 107.5, 0, "")}, TaskState::kRunning),
      Task("tasks/b", TaskKind::kBuild, {Attempt(1, "alpha", 107, 108, 109, "WORKER_FAILED")},
           TaskState::kQueued),
      Task("tasks/c", TaskKind::kTime, {}, TaskState::kQueued),
      Task("tasks/d", TaskKind::kTime, {}, TaskState::kCancelled)};
  const json trace = Trace(Job(JobState::kRunning), record);
  EXPECT_EQ(Spans(trace, "jobs/1").at(0)["dur"], 20000000);
  EXPECT_EQ(Spans(trace, "search").at(0)["dur"], 4000000) << "a server was ended in it";
  EXPECT_EQ(Spans(trace, "search").at(0)["args"]["unfinished"], true);
  EXPECT_EQ(Spans(trace, "codegen").at(0)["dur"], 14000000);
  EXPECT_EQ(Spans(trace, "build").at(0)["args"]["outcome"], "RUNNING");
  EXPECT_EQ(Spans(trace, "build").at(0)["dur"], 12500000);
  std::vector<std::string> waits;
  for (const std::string name : {"build waits", "time waits"})
    for (const json& span : Spans(trace, name))
      waits.push_back(span["args"]["task"].get<std::string>() + " " +
                      span["args"]["outcome"].get<std::string>());
  EXPECT_THAT(waits, UnorderedElementsAre("tasks/a CLAIMED", "tasks/b CLAIMED", "tasks/b QUEUED",
                                          "tasks/c QUEUED", "tasks/d CANCELLED"));
}

TEST(JobTraceTest, ManyTasksTakeAsManyTracksAsThereAreAtATime) {
  JobTraceRecord record;
  constexpr int kTasks = 2000, kSlots = 8;
  for (int i = 0; i < kTasks; ++i) {
    const double claimed = 102 + i / kSlots * 0.001;
    record.tasks.push_back(Task(absl::StrCat("tasks/", i), TaskKind::kBuild,
                                {Attempt(1, "alpha", 101, claimed, claimed + 0.001, "DONE")}));
  }
  const json trace = Trace(Job(), record);
  std::set<int> tracks;
  for (const json& build : Spans(trace, "build")) tracks.insert(build["tid"].get<int>());
  EXPECT_EQ(Spans(trace, "build").size(), static_cast<size_t>(kTasks));
  EXPECT_EQ(tracks.size(), static_cast<size_t>(kSlots));
}

TEST(JobTraceTest, WorkOfEarlierJobsIsLeftOut) {
  JobTraceRecord record;
  record.tasks = {Task("tasks/a", TaskKind::kBuild, {Attempt(1, "alpha", 50, 51, 52, "DONE")}),
                  Task("tasks/b", TaskKind::kBuild, {Attempt(1, "alpha", 98, 99, 101, "DONE")})};
  const json trace = Trace(Job(), record);
  ASSERT_EQ(Spans(trace, "build").size(), 1u);
  EXPECT_EQ(Spans(trace, "build")[0]["args"]["task"], "tasks/b");
  EXPECT_EQ(trace["otherData"]["begin_micros_since_1970"], 98000000) << "no time is negative";
}

TEST(JobTraceTest, AnEmptyJobAndStrangeNames) {
  EXPECT_EQ(Processes(Trace(Job(), {})), std::set<std::string>{"server"});
  JobTraceRecord record;
  record.traceparent = "nonsense";
  record.tasks = {Task("tasks/a", TaskKind::kBuild, {Attempt(1, "a\"b\xff", 101, 102, 101, "DONE")})};
  const json trace = Trace(Job(), record);
  EXPECT_FALSE(trace["otherData"].contains("trace_id"));
  EXPECT_EQ(Spans(trace, "build").at(0)["dur"], 0) << "a clock that was set back gives no negative time";
}

}  // namespace
}  // namespace fusion
