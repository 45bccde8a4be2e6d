#include "server/jobs/job_trace.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/monitor/trace_context.h"
#include "base/status_macros.h"

namespace fusion {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kServer = 1, kQueue = 2, kFirstWorker = 3;  // processes
constexpr int kJobTrack = 1, kPipelineTrack = 2;

int64_t Micros(Timestamp time) { return time.time_since_epoch().count(); }

// Something with a beginning and an end on one track of a process.
struct Span {
  int process = 0;
  std::string group;  // spans of one group share tracks, as many as it takes
  std::string name;
  Timestamp begin{}, end{};
  Json args;
  bool lease_lost = false;
};

const char* KindName(TaskKind kind) { return kind == TaskKind::kBuild ? "build" : "time"; }
bool IsLost(const AttemptRecord& attempt) {
  return attempt.ended_how == "LEASE_EXPIRED" || attempt.ended_how == "WORKER_GONE";
}

class Timeline {
 public:
  Timeline(const JobRecord& job, const JobTraceRecord& trace, Timestamp now)
      : job_(job), end_(IsTerminal(job.state) ? job.updated : now), now_(now) {
    AddJob();
    AddStages(trace.stages);
    AddTasks(trace.tasks);
  }

  Json Events() const {
    Json names = Json::array(), spans = Json::array();
    const Timestamp first = Begin();
    for (const auto& [process, name] : processes_) {
      names.push_back(Name("process_name", process, 0, {{"name", name}}));
      names.push_back(Name("process_sort_index", process, 0, {{"sort_index", process}}));
    }
    for (const auto& [track, placed] : Tracks()) {
      const auto& [process, group, lane] = track;
      const int thread = ThreadOf(process, group, lane);
      const std::string name = lane == 0 ? group : absl::StrCat(group, " ", lane + 1);
      names.push_back(Name("thread_name", process, thread, {{"name", name}}));
      names.push_back(Name("thread_sort_index", process, thread, {{"sort_index", thread}}));
      for (const Span* span : placed) {
        spans.push_back({{"name", span->name},
                         {"cat", group},
                         {"ph", "X"},
                         {"ts", Micros(span->begin) - Micros(first)},
                         {"dur", Micros(span->end) - Micros(span->begin)},
                         {"pid", process},
                         {"tid", thread},
                         {"args", span->args}});
        if (span->lease_lost)
          spans.push_back({{"name", "lease lost"},
                           {"cat", group},
                           {"ph", "i"},
                           {"s", "t"},
                           {"ts", Micros(span->end) - Micros(first)},
                           {"pid", process},
                           {"tid", thread},
                           {"args", span->args}});
      }
    }
    std::stable_sort(spans.begin(), spans.end(),
                     [](const Json& a, const Json& b) { return a["ts"] < b["ts"]; });
    names.insert(names.end(), spans.begin(), spans.end());
    return names;
  }

  // The first thing that happened.
  Timestamp Begin() const {
    Timestamp first = job_.created;
    for (const Span& span : spans_) first = std::min(first, span.begin);
    return first;
  }

 private:
  using Track = std::tuple<int, std::string, int>;  // process, group, lane

  static Json Name(const char* what, int process, int thread, Json args) {
    return {{"name", what},   {"ph", "M"},     {"ts", 0},
            {"pid", process}, {"tid", thread}, {"args", std::move(args)}};
  }

  void Add(Span span) {
    span.end = std::max(span.begin, span.end);
    groups_[span.process].insert(span.group);
    spans_.push_back(std::move(span));
  }

  void AddJob() {
    processes_[kServer] = "server";
    Add({.process = kServer,
         .group = "job",
         .name = job_.id,
         .begin = job_.created,
         .end = end_,
         .args = {{"state", JobStateName(job_.state)}, {"graph", job_.graph_name}}});
  }

  void AddStages(const std::vector<StageRecord>& stages) {
    for (size_t i = 0; i < stages.size(); ++i) {
      const StageRecord& stage = stages[i];
      const bool unfinished = stage.ended == Timestamp();
      // The stage in which a server was ended reaches to where the next server began.
      const Timestamp end = !unfinished ? stage.ended : i + 1 < stages.size() ? stages[i + 1].started : end_;
      Json args = Json::object();
      if (unfinished) args["unfinished"] = true;
      Add({.process = kServer,
           .group = "pipeline",
           .name = stage.name,
           .begin = stage.started,
           .end = end,
           .args = std::move(args)});
    }
  }

  void AddTasks(const std::vector<TracedTask>& tasks) {
    // Numbered by name, so that a trace of the same job is the same.
    std::map<std::string, int> workers;
    for (const TracedTask& task : tasks)
      for (const AttemptRecord& attempt : task.attempts) workers[attempt.worker] = 0;
    int next = kFirstWorker;
    for (auto& [worker, process] : workers) process = next++;

    for (const TracedTask& task : tasks) {
      const auto args = [&](int attempt, const std::string& outcome) {
        Json json = {{"task", task.id},
                     {"attempt", attempt},
                     {"outcome", outcome},
                     {"target", task.requirements.target}};
        if (!task.requirements.arch.empty()) json["arch"] = task.requirements.arch;
        if (!task.requirements.device_uuid.empty()) json["device"] = task.requirements.device_uuid;
        return json;
      };
      Timestamp waits_since = task.created;
      int number = 0;
      for (const AttemptRecord& attempt : task.attempts) {
        ++number;
        const bool runs = attempt.ended == Timestamp();
        waits_since = runs ? now_ : attempt.ended;
        if (!runs && attempt.ended <= job_.created) continue;  // work of an earlier job that this one uses
        AddQueued(task, attempt.queued, attempt.claimed, args(number, "CLAIMED"));
        Json about = args(number, runs ? "RUNNING" : attempt.ended_how);
        about["fence"] = attempt.fence;
        about["instance"] = attempt.instance;
        if (attempt.ended_how == "WORKER_FAILED" && !task.failure_message.empty() &&
            number == int(task.attempts.size()))
          about["message"] = task.failure_message;
        const int process = workers[attempt.worker];
        processes_[process] = absl::StrCat("worker ", attempt.worker);
        Add({.process = process,
             .group = task.kind == TaskKind::kBuild ? "build"
                                                    : absl::StrCat("time ", task.requirements.device_uuid),
             .name = KindName(task.kind),
             .begin = attempt.claimed,
             .end = runs ? now_ : attempt.ended,
             .args = std::move(about),
             .lease_lost = IsLost(attempt)});
      }
      if (task.state == TaskState::kQueued) AddQueued(task, waits_since, now_, args(number + 1, "QUEUED"));
      if (task.state == TaskState::kCancelled && (task.attempts.empty() || waits_since < task.updated))
        AddQueued(task, waits_since, task.updated, args(number + 1, "CANCELLED"));
    }
  }

  void AddQueued(const TracedTask& task, Timestamp begin, Timestamp end, Json args) {
    processes_[kQueue] = "queue";
    Add({.process = kQueue,
         .group = "waiting",
         .name = absl::StrCat(KindName(task.kind), " waits"),
         .begin = begin,
         .end = end,
         .args = std::move(args)});
  }

  // Spans of a group on the first track on which they overlap with none.
  std::map<Track, std::vector<const Span*>> Tracks() const {
    std::vector<const Span*> sorted;
    for (const Span& span : spans_) sorted.push_back(&span);
    std::stable_sort(sorted.begin(), sorted.end(), [](const Span* a, const Span* b) {
      return std::tie(a->begin, a->end) < std::tie(b->begin, b->end);
    });
    // The lanes of a group: when the busy ones end, and which are free.
    struct Lanes {
      std::set<std::pair<Timestamp, int>> busy;
      std::set<int> free;
    };
    std::map<std::pair<int, std::string>, Lanes> groups;
    std::map<Track, std::vector<const Span*>> tracks;
    for (const Span* span : sorted) {
      Lanes& lanes = groups[{span->process, span->group}];
      while (!lanes.busy.empty() && lanes.busy.begin()->first <= span->begin) {
        lanes.free.insert(lanes.busy.begin()->second);
        lanes.busy.erase(lanes.busy.begin());
      }
      const int lane = lanes.free.empty() ? static_cast<int>(lanes.busy.size()) : *lanes.free.begin();
      lanes.free.erase(lane);
      lanes.busy.emplace(span->end, lane);
      tracks[Track(span->process, span->group, lane)].push_back(span);
    }
    return tracks;
  }

  // Groups of a process have a hundred thousand threads each.
  int ThreadOf(int process, const std::string& group, int lane) const {
    if (process == kServer) return (group == "job" ? kJobTrack : kPipelineTrack) + 10 * lane;
    const std::set<std::string>& groups = groups_.at(process);
    return 1 + lane + 100000 * static_cast<int>(std::distance(groups.begin(), groups.find(group)));
  }

  const JobRecord& job_;
  const Timestamp end_;  // of what belongs to the job and has no end of its own
  const Timestamp now_;
  std::map<int, std::string> processes_;
  std::map<int, std::set<std::string>> groups_;  // by process
  std::vector<Span> spans_;
};

}  // namespace

std::string TraceJson(const JobRecord& job, const JobTraceRecord& trace, Timestamp now) {
  const Timeline timeline(job, trace, now);
  Json other = {{"job", job.id},
                {"state", JobStateName(job.state)},
                {"begin_micros_since_1970", Micros(timeline.Begin())}};
  if (const auto context = ParseTraceParent(trace.traceparent)) {
    other["trace_id"] = context->trace_id;
    other["traceparent"] = trace.traceparent;
  }
  const Json json = {
      {"displayTimeUnit", "ms"}, {"otherData", std::move(other)}, {"traceEvents", timeline.Events()}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<std::string> TraceOfJob(JobStore& store, const std::string& job, Timestamp now) {
  FUSION_ASSIGN_OR_RETURN(JobRecord record, store.GetJob(job));
  FUSION_ASSIGN_OR_RETURN(JobTraceRecord trace, store.JobTrace(job));
  return TraceJson(record, trace, now);
}

}  // namespace fusion
