#include "tests/fault/simulation/farm.h"

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/dispatch/task_queue.h"
#include "tests/fault/simulation/network.h"
#include "tests/fault/simulation/simulated_server.h"
#include "tests/fault/simulation/simulated_worker.h"

namespace fusion {
namespace {

using Duration = EventLoop::Duration;
constexpr std::chrono::seconds kTick{1};
// Within which everything that was accepted has ended, once there are no more faults.
constexpr std::chrono::minutes kPatience{20};
// A holder that was not heard of at some time in so long after it began may rightly count as lost.
constexpr std::chrono::seconds kLeaseWithSlack{40};

class Farm {
 public:
  Farm(const FarmPlan& plan, const std::string& folder)
      : plan_(plan),
        random_(plan.seed),
        server_(loop_, folder),
        network_(loop_, random_(),
                 [this](const auto& request, auto* response) { return Serve(request, response); }) {}

  FarmReport Run() {
    StartServer();
    for (int i = 0; i < plan_.workers; ++i) AddWorker(i);
    for (int i = 0; i < plan_.jobs; ++i)
      loop_.After(EventLoop::Seconds(Random(0, 0.8 * plan_.seconds_of_faults)), [this, i] { Submit(i); });
    for (int i = 0; i < plan_.faults; ++i)
      loop_.After(EventLoop::Seconds(Random(0, plan_.seconds_of_faults)), [this] { Fault(); });
    Tick();
    while (loop_.RunOne(EventLoop::Seconds(plan_.seconds_of_faults)) && report_.violations.empty()) {
    }
    Heal();
    const Duration end = loop_.now() + kPatience;
    while (!AllEnded() && loop_.RunOne(end) && report_.violations.empty()) {
    }
    if (report_.violations.empty()) CheckEnd();
    return report_;
  }

 private:
  struct Job {
    std::string id;
    std::vector<TaskSpec> specs;
    bool cancelled = false;
  };
  // A task under a fence in the hands of a worker.
  struct Attempt {
    std::string worker;
    Duration begun{0};
  };
  struct Interval {
    Duration from, to;
  };

  double Random(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  int Pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  void Violation(const std::string& what) {
    report_.violations.push_back(
        absl::StrCat("seed ", plan_.seed, ", ", loop_.now().count() / 1e6, " s: ", what));
  }
  void Trace(const std::string& what) {
    for (char c : absl::StrCat(loop_.now().count(), " ", what, "\n"))
      report_.trace = (report_.trace ^ static_cast<unsigned char>(c)) * 1099511628211u;
  }

  void StartServer() {
    if (skew_ != skew_in_force_) ++report_.clock_moves;
    skew_in_force_ = skew_;
    std::string error;
    if (!server_.Start(&error)) Violation(absl::StrCat("the server does not start: ", error));
    Trace("server started");
  }

  void AddWorker(int i) {
    v1::DeviceDescription device;
    device.set_name("Simulated GPU");
    device.set_target(v1::CUDA);
    device.set_arch("sm_90");
    device.set_uuid(absl::StrCat("GPU-", i));
    auto worker = std::make_unique<SimulatedWorker>(
        loop_, SimulatedWorker::Traits{absl::StrCat("worker", i), {device}, 2, 0.03}, random_(),
        [this](const v1::SynchronizeRequest& request, SimulatedNetwork::Answer answer) {
          network_.Send(request, std::move(answer));
        });
    worker->on_begin = [this](const std::string& name, const v1::Assignment& assignment) {
      begun_[{assignment.task(), assignment.fence()}].push_back({name, loop_.now()});
      Trace(absl::StrCat(name, " begins ", NameOf(assignment), " under fence ", assignment.fence()));
    };
    worker->on_told_to_end = [this](const std::string& name) {
      disturbed_[name].push_back({loop_.now(), loop_.now() + EventLoop::Seconds(1)});
    };
    workers_.push_back(std::move(worker));
    loop_.After(EventLoop::Seconds(Random(0, 2)), [this, i] { workers_[i]->Begin(); });
  }

  static std::string NameOf(const v1::Assignment& assignment) {
    return assignment.has_build() ? assignment.build().key() : assignment.time().session().key();
  }

  // A client that asks again until it is told that it was heard; whatever it is told twice is one job.
  void Submit(int i) {
    const auto again = [this, i] { loop_.After(std::chrono::seconds(1), [this, i] { Submit(i); }); };
    if (!server_.running()) return again();
    JobRecord record;
    record.user = absl::StrCat("user", i % 3);
    record.request_id = absl::StrCat("request", i);
    absl::StatusOr<CreatedJob> created = server_.store().CreateJob(record, server_.Now());
    if (!created.ok()) return Violation(created.status().ToString());
    if (Pick(10) == 0) {
      KillServer(Random(0, 5));  // before the tasks are queued
      return again();
    }
    Job job;
    job.id = created->job.id;
    for (int b = 0; b < plan_.builds_of_job; ++b) {
      v1::BuildTask build;
      build.set_key(absl::StrCat("build", (5 * i + b) % (4 * plan_.jobs)));
      build.set_target(v1::CUDA);
      build.set_arch("sm_90");
      job.specs.push_back(SpecOf(build));
    }
    v1::DeviceDescription device;
    device.set_target(v1::CUDA);
    device.set_arch("sm_90");
    device.set_uuid(absl::StrCat("GPU-", i % plan_.workers));
    for (int t = 0; t < plan_.timings_of_job; ++t) {
      v1::TimeTask task;
      task.mutable_session()->set_key(absl::StrCat("timing", i, ".", t));
      job.specs.push_back(SpecOf(absl::StrCat("job", i), task, device));
    }
    if (absl::Status queued = server_.dispatcher().Enqueue(job.id, job.specs); !queued.ok())
      return Violation(queued.ToString());
    if (Pick(10) == 0) {
      KillServer(Random(0, 5));  // before the client is told
      return again();
    }
    jobs_[i] = std::move(job);
    Trace(absl::StrCat("job ", i, " accepted"));
  }

  bool Serve(const v1::SynchronizeRequest& request, v1::SynchronizeResponse* response) {
    if (!server_.running()) return false;
    struct Before {
      TaskState state;
      std::string result;
      int64_t fence;
    };
    std::map<std::string, Before> before;
    for (const v1::TaskReport& report : request.tasks())
      if (report.has_build() || report.has_time())
        if (absl::StatusOr<TaskRecord> task = server_.store().GetTask(report.task()); task.ok())
          before[report.task()] = {task->state, task->result, task->fence};
    if (plan_.forge_fences) {
      v1::SynchronizeRequest forged = request;
      for (v1::TaskReport& report : *forged.mutable_tasks())
        if (auto known = before.find(report.task()); known != before.end())
          report.set_fence(known->second.fence);
      *response = server_.Synchronize(forged);
    } else {
      *response = server_.Synchronize(request);
    }
    for (const v1::TaskReport& report : request.tasks())
      if (auto known = before.find(report.task()); known != before.end())
        CheckResult(request, report, known->second.state, known->second.result);
    if (kill_before_answer_) {
      kill_before_answer_ = false;
      KillServer(Random(0, 40));
      return false;
    }
    return true;
  }

  // A result is taken once, from the holder of the newest fence, and stays as it is.
  void CheckResult(const v1::SynchronizeRequest& request, const v1::TaskReport& report,
                   TaskState state_before, const std::string& result_before) {
    absl::StatusOr<TaskRecord> task = server_.store().GetTask(report.task());
    if (!task.ok()) return Violation(absl::StrCat(report.task(), ": ", task.status().ToString()));
    const bool taken = state_before == TaskState::kRunning && task->state == TaskState::kDone;
    if (taken) {
      Trace(absl::StrCat("result of ", task->key, " from ", request.worker(), " fence ", report.fence()));
      if (report.fence() != task->fence)
        Violation(absl::StrCat(task->key, ": a result of fence ", report.fence(), " was taken under fence ",
                               task->fence));
      if (task->worker != request.worker() || task->instance != request.instance())
        Violation(absl::StrCat(task->key, ": the result came from ", request.worker(), "/",
                               request.instance(), ", the holder is ", task->worker, "/", task->instance));
    } else if (state_before == TaskState::kDone && task->result != result_before) {
      Violation(absl::StrCat(task->key, ": a second result was accepted"));
    } else {
      ++report_.stale_results;
    }
  }

  void Tick() {
    if (server_.running()) server_.Tick();
    loop_.After(kTick, [this] { Tick(); });
  }

  void KillServer(double down_seconds) {
    if (!server_.running()) return;
    Trace("server killed");
    server_.Kill();
    server_down_.push_back({loop_.now(), loop_.now() + EventLoop::Seconds(down_seconds)});
    const int kill = ++kills_;
    loop_.After(EventLoop::Seconds(down_seconds), [this, kill] {
      if (!server_.running() && kill == kills_) StartServer();
    });
  }

  void Fault() {
    ++report_.faults;
    SimulatedWorker& worker = *workers_[Pick(static_cast<int>(workers_.size()))];
    const auto disturb = [&](double seconds) {
      disturbed_[worker.name()].push_back({loop_.now(), loop_.now() + EventLoop::Seconds(seconds)});
      return EventLoop::Seconds(seconds);
    };
    SimulatedNetwork::Trouble trouble;
    const int kind = Pick(12);
    Trace(absl::StrCat("fault ", kind, " at ", worker.name()));
    switch (kind) {
      case 0:
        return worker.Crash(disturb(Random(0, 30)));
      case 1:
        return worker.Pause(disturb(Random(1, 60)));
      case 2:
        trouble.requests_lost = trouble.answers_lost = true;
        break;
      case 3:
        trouble.requests_lost = true;
        break;
      case 4:
        trouble.answers_lost = true;
        break;
      case 5:
        trouble.loss = 0.3;
        break;
      case 6:
        trouble.delay = std::chrono::seconds(5);
        break;
      case 7:
      case 8:
        trouble.duplicated = true;
        break;
      case 9:
        return KillServer(Random(0, 40));
      case 10:
        kill_before_answer_ = true;
        return;
      case 11:
        if (Pick(2) == 0) {
          skew_ = std::chrono::hours(Pick(3) - 1);
          server_.set_skew(skew_);  // at the next start
        } else if (!jobs_.empty() && Pick(4) == 0 && server_.running()) {
          Cancel(std::next(jobs_.begin(), Pick(static_cast<int>(jobs_.size())))->second);
        }
        return;
    }
    trouble.until = loop_.now() + disturb(Random(1, 40));
    network_.AddTrouble(worker.name(), trouble);
  }

  void Cancel(Job& job) {
    JobUpdate update;
    update.state = JobState::kCancelled;
    if (!server_.store().UpdateJob(job.id, update, server_.Now()).ok()) return;
    if (absl::Status cancelled = server_.dispatcher().CancelJob(job.id); !cancelled.ok())
      Violation(cancelled.ToString());
    job.cancelled = true;
  }

  void Heal() {
    Trace("healed");
    kill_before_answer_ = false;
    network_.Heal();
    if (!server_.running()) StartServer();
  }

  bool AllEnded() {
    if (static_cast<int>(jobs_.size()) < plan_.jobs || !server_.running()) return false;
    absl::StatusOr<std::vector<TaskRecord>> live = server_.store().LiveTasks();
    return live.ok() && live->empty();
  }

  void CheckEnd() {
    if (!AllEnded()) {
      absl::StatusOr<std::vector<TaskRecord>> live = server_.store().LiveTasks();
      for (const TaskRecord& task : live.value_or(std::vector<TaskRecord>()))
        Violation(
            absl::StrCat(task.key, " has not ended: ", TaskStateName(task.state), ", fence ", task.fence));
      if (static_cast<int>(jobs_.size()) < plan_.jobs) Violation("a job was never accepted");
      return;
    }
    for (const auto& [i, job] : jobs_) {
      if (job.cancelled) continue;
      // All that was accepted is known still: nothing is queued anew.
      absl::StatusOr<std::vector<EnsuredTask>> known =
          server_.store().EnsureTasks(job.id, job.specs, server_.Now());
      if (!known.ok()) return Violation(known.status().ToString());
      for (const EnsuredTask& task : *known) {
        if (task.created) Violation(absl::StrCat("job ", i, ": ", task.task.key, " was lost"));
        CheckTask(task.task);
      }
    }
    if (absl::Status sound = server_.store().CheckIntegrity(); !sound.ok()) Violation(sound.ToString());
  }

  void CheckTask(const TaskRecord& task) {
    const bool done = task.state == TaskState::kDone;
    ++(done ? report_.done : task.state == TaskState::kFailed ? report_.failed : report_.cancelled);
    if (task.state == TaskState::kCancelled) return;
    report_.lost_workers += task.lost_workers;
    // Every claim is accounted for once: a restarted server counts nothing.
    if (task.attempts != task.failures + task.lost_workers + (done ? 1 : 0))
      Violation(absl::StrCat(task.key, ": ", task.attempts, " claims, ", task.failures, " failures, ",
                             task.lost_workers, " lost workers, ", TaskStateName(task.state)));
    if (done) {
      const std::string result = Signature(task);
      const auto begun = begun_.find({task.id, task.fence});
      const bool known = begun != begun_.end() &&
                         std::any_of(begun->second.begin(), begun->second.end(),
                                     [&](const auto& a) { return result.rfind(a.worker + "/", 0) == 0; });
      if (!known || result.substr(result.rfind('/') + 1) != absl::StrCat(task.fence))
        Violation(absl::StrCat(task.key, ": its result, '", result,
                               "', was made by nobody who held it under fence ", task.fence));
    } else if (task.failures < 3 && task.lost_workers < 2) {
      Violation(absl::StrCat(task.key, ": given up too early"));
    }
    int disturbed = 0;
    for (int64_t fence = 1; fence <= task.fence; ++fence) disturbed += WasDisturbed(task.id, fence) ? 1 : 0;
    if (task.lost_workers > disturbed)
      Violation(absl::StrCat(task.key, ": ", task.lost_workers, " workers count as lost, but only ",
                             disturbed, " were disturbed"));
  }

  // Whether something happened to the holder, or to the server, while it held the task.
  bool WasDisturbed(const std::string& task, int64_t fence) const {
    const auto begun = begun_.find({task, fence});
    if (begun == begun_.end()) return true;  // the assignment never arrived
    for (const Attempt& attempt : begun->second) {
      const Interval held{attempt.begun, attempt.begun + kLeaseWithSlack};
      const auto overlaps = [&](const Interval& other) {
        return other.from < held.to && held.from < other.to + EventLoop::Seconds(10);
      };
      if (std::any_of(server_down_.begin(), server_down_.end(), overlaps)) return true;
      const auto of_worker = disturbed_.find(attempt.worker);
      if (of_worker != disturbed_.end() &&
          std::any_of(of_worker->second.begin(), of_worker->second.end(), overlaps))
        return true;
    }
    return false;
  }

  static std::string Signature(const TaskRecord& task) {
    if (task.kind == TaskKind::kBuild) return BuildResultOf(task).value_or(v1::BuildResult()).log();
    const v1::TimeResult result = TimeResultOf(task).value_or(v1::TimeResult());
    return result.programs_size() == 1 ? result.programs(0).name() : "";
  }

  const FarmPlan plan_;
  std::mt19937_64 random_;
  EventLoop loop_;
  SimulatedServer server_;
  SimulatedNetwork network_;
  std::vector<std::unique_ptr<SimulatedWorker>> workers_;
  std::map<int, Job> jobs_;
  std::map<std::pair<std::string, int64_t>, std::vector<Attempt>> begun_;  // by task and fence
  std::map<std::string, std::vector<Interval>> disturbed_;                 // by worker
  std::vector<Interval> server_down_;
  bool kill_before_answer_ = false;
  int kills_ = 0;
  EventLoop::Duration skew_{0}, skew_in_force_{0};  // of the server's clock; from its next start on
  FarmReport report_;
};

}  // namespace

FarmReport RunFarm(const FarmPlan& plan, const std::string& folder) { return Farm(plan, folder).Run(); }

}  // namespace fusion
