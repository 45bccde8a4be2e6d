// Sequences of what several workers say in turn, made of any bytes: processes that come and are replaced,
// tasks that they have, had or never had, with the right fence or another, while jobs come and end, time
// passes, connections break and the server starts again. Behind every step the tasks in the store are
// compared with what they were before it: nobody but its holder ends a task, or gives it up, and what has
// ended stays as it is. Bytes do the same at every run: everything happens in the calling thread, by a clock
// of its own.
#pragma once

#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/dispatch/dispatcher.h"
#include "tests/fuzz/message_input.h"
#include "tests/fuzz/script_reader.h"

namespace fusion {

class WorkerSequences {
 public:
  WorkerSequences() {
    spdlog::set_level(spdlog::level::off);
    // The folder is in memory where there is such a file system.
    std::string path =
        std::filesystem::exists("/dev/shm") ? "/dev/shm/fusion-fuzz-XXXXXX" : "/tmp/fusion-fuzz-XXXXXX";
    Require(mkdtemp(path.data()) != nullptr, "no folder");
    folder_ = path;
    store_ = *OpenSqliteStore(folder_ + "/fusion.db");
    uploaded_ = *store_->PutBlob("a binary", "", clock_.Now());
    options_.expiry_period = std::chrono::hours(24);  // steps look for lost workers, and no timer
  }
  ~WorkerSequences() {
    Require(store_->CheckIntegrity().ok(), "the store is not sound");
    store_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Farms follow each other in one store; workers of one are strangers to the next.
  void Run(const std::string& bytes) {
    ScriptReader in(bytes);
    ++runs_;
    call_ = 0;
    jobs_.clear();
    tasks_.clear();
    calls_.clear();
    StartServer();
    AddJob(in);
    for (int steps = 0; steps < kMostSteps && !in.Done(); ++steps) Step(in);
    StopServer();
    for (const std::string& job : jobs_) EndJob(job);
  }
  int64_t steps() const { return steps_; }
  // Results that were stored, so that a test sees that its scripts come to something.
  int64_t results() const { return results_; }

 private:
  static constexpr int kMostSteps = 64;
  static constexpr size_t kMostTasks = 12, kMostJobs = 4;

  class TurnedClock final : public Clock {
   public:
    Timestamp Now() const override { return now_; }
    void Advance(std::chrono::milliseconds by) { now_ += by; }

   private:
    Timestamp now_{std::chrono::seconds(1'000'000)};
  };
  struct Call {
    v1::SynchronizeRequest request;
    v1::SynchronizeResponse answer;
    int answers = 0;
    bool looked_at = false;
  };
  // Reasons for which a step may change tasks.
  struct Allowed {
    const v1::SynchronizeRequest* said = nullptr;  // in this step
    bool workers_are_lost = false;                 // time has passed
    std::string ended_job;
  };

  void StartServer() {
    dispatcher_ = std::make_unique<Dispatcher>(*store_, io_.get_executor(), clock_, options_);
    Require(dispatcher_->Start().ok(), "the dispatcher does not start");
  }
  void StopServer() {
    dispatcher_.reset();
    RunPosted();
    for (const auto& call : calls_) Require(call->answers == 1, "a call was not answered, or twice");
  }
  void RunPosted() {
    io_.restart();
    io_.poll();
  }

  void AddJob(ScriptReader& in) {
    if (jobs_.size() >= kMostJobs) return;
    const auto job = store_->CreateJob({}, clock_.Now());
    Require(job.ok(), "no job");
    jobs_.push_back(job->job.id);
    std::vector<TaskSpec> specs;
    for (int count = 1 + in.Below(4); count > 0; --count) {
      const std::string key = absl::StrCat(job->job.id, " ", count);
      const int kind = in.Below(4);
      if (kind < 2) {
        v1::BuildTask task;
        task.set_key(key);
        task.set_target(v1::HOST);
        task.set_arch("x86-64");
        specs.push_back(SpecOf(task));
      } else {
        v1::DeviceDescription device;
        device.set_target(kind == 2 ? v1::HOST : v1::CUDA);
        device.set_arch(kind == 2 ? "x86-64" : "sm_90");
        device.set_uuid(kind == 2 ? "CPU-1" : "GPU-1");
        v1::TimeTask task;
        task.mutable_session()->set_key(key);
        specs.push_back(SpecOf(job->job.id, task, device));
      }
    }
    if (tasks_.size() + specs.size() > kMostTasks) return;
    Require(dispatcher_->Enqueue(job->job.id, specs).ok(), "tasks are not queued");
    const auto queued = store_->EnsureTasks(job->job.id, specs, clock_.Now());
    Require(queued.ok(), "tasks are not known");
    for (const EnsuredTask& ensured : *queued) {
      Require(!ensured.created, "tasks were not queued");
      if (!Known(ensured.task.id)) tasks_.push_back(ensured.task);
    }
  }
  void EndJob(const std::string& job) {
    (void)store_->UpdateJob(job, {.state = JobState::kCancelled}, clock_.Now());
    if (dispatcher_) Require(dispatcher_->CancelJob(job).ok(), "a job cannot be cancelled");
  }
  bool Known(const std::string& id) const {
    for (const TaskRecord& task : tasks_)
      if (task.id == id) return true;
    return false;
  }

  std::string Worker(ScriptReader& in) const { return absl::StrCat("w", in.Below(3), " ", runs_); }

  void Step(ScriptReader& in) {
    ++steps_;
    Allowed allowed;
    v1::SynchronizeRequest request;
    switch (const int step = in.Below(32)) {
      case 20:
        AddJob(in);
        break;
      case 21:
        allowed.ended_job = jobs_[in.Below(static_cast<int>(jobs_.size()))];
        EndJob(allowed.ended_job);
        break;
      case 22:
        dispatcher_->CallBroke(Worker(in), in.Below(8) == 0 ? call_ + 5 : call_ - in.Below(4));
        break;
      case 23:
        (void)dispatcher_->Drain(absl::StrCat(in.Below(2) == 0 ? "workers/" : "", Worker(in)));
        break;
      case 24:
        StopServer();
        StartServer();
        break;
      case 25:
      case 26:
      case 27: {
        constexpr std::chrono::seconds kTimes[] = {std::chrono::seconds(0),  std::chrono::seconds(1),
                                                   std::chrono::seconds(6),  std::chrono::seconds(16),
                                                   std::chrono::seconds(31), std::chrono::hours(2)};
        clock_.Advance(kTimes[in.Below(std::size(kTimes))]);
        dispatcher_->Tick();
        allowed.workers_are_lost = true;
        break;
      }
      case 28: {  // any message at all
        SilenceProtobuf();
        const int size = in.Byte();
        if (!request.ParseFromString(in.Bytes(size))) return;
        allowed.said = &request;
        Say(request);
        break;
      }
      default:
        request = Request(in, /*honest=*/step < 8);
        allowed.said = &request;
        Say(request);
    }
    RunPosted();
    Compare(allowed);
  }

  // `honest`: it reports tasks that the worker has, with their fences.
  v1::SynchronizeRequest Request(ScriptReader& in, bool honest) {
    v1::SynchronizeRequest request;
    request.set_worker(Worker(in));
    request.set_instance(absl::StrCat(in.Below(8) < 6 ? 1 : in.Below(4)));
    const int offer = in.Byte();
    if ((offer & 1) == 0) request.add_builds()->set_target(v1::HOST);
    for (const auto& [bit, uuid] : {std::pair(2, "CPU-1"), {4, "GPU-1"}}) {
      if ((offer & bit) == 0) continue;
      v1::DeviceDescription* device = request.add_devices();
      device->set_uuid(uuid);
      device->set_target(bit == 2 ? v1::HOST : v1::CUDA);
      device->set_arch(bit == 2 ? "x86-64" : "sm_90");
      device->set_copy_bytes_per_second(1e10);
      if ((offer & 8) != 0) request.add_free_devices(uuid);
      if ((offer & 16) != 0) request.add_problems()->set_device_uuid(uuid);
    }
    request.set_draining((offer & 0xe0) == 0x20);
    request.set_wait_seconds((offer & 0x40) != 0 ? 5 : 0);
    if ((offer & 0x80) != 0) request.set_version("1");
    request.set_free_build_slots(Slots(in));
    request.set_free_time_slots(Slots(in));
    for (int count = in.Below(4); count > 0; --count) AddReport(in, honest, request);
    return request;
  }
  static int Slots(ScriptReader& in) {
    const int slots = in.Below(16);
    if (slots == 15) return std::numeric_limits<int>::max();
    return slots == 14 ? std::numeric_limits<int>::min() : slots % 4;
  }
  void AddReport(ScriptReader& in, bool honest, v1::SynchronizeRequest& request) {
    v1::TaskReport* report = request.add_tasks();
    std::vector<const TaskRecord*> candidates;
    for (const TaskRecord& task : tasks_)
      if (!honest || (task.state == TaskState::kRunning && task.worker == request.worker()))
        candidates.push_back(&task);
    const int which = in.Byte();
    bool build = which % 2 == 0;
    if (candidates.empty() || (!honest && which == 255)) {
      report->set_task(absl::StrCat("tasks/", which));
    } else {
      const TaskRecord& task = *candidates[static_cast<size_t>(which) % candidates.size()];
      report->set_task(task.id);
      report->set_fence(task.fence);
      build = task.kind == TaskKind::kBuild;
    }
    if (!honest) {
      const int fence = in.Byte();
      if (fence % 4 == 2) report->set_fence(report->fence() - 1);
      if (fence % 4 == 3) report->set_fence(fence == 255 ? std::numeric_limits<int64_t>::max() : fence - 128);
      if (fence % 16 == 4) build = !build;
    }
    switch (const int state = in.Below(8)) {
      case 0:
        report->set_running(true);
        break;
      case 1:
        break;
      case 2:
        report->set_failure("no");
        break;
      default:
        if (!build) {
          report->mutable_time()->mutable_unfused()->set_outcome(v1::OK);
          if (state == 3) report->mutable_time()->set_failure("the session failed");
          break;
        }
        report->mutable_build()->set_outcome(state == 3   ? v1::COMPILE_ERROR
                                             : state == 4 ? v1::TIMEOUT
                                                          : v1::OK);
        if (state == 3) report->mutable_build()->set_seconds(std::numeric_limits<double>::quiet_NaN());
        report->mutable_build()->set_binary(state == 5 ? "sha256:0" : uploaded_);
    }
  }

  void Say(const v1::SynchronizeRequest& request) {
    auto call = std::make_shared<Call>();
    call->request = request;
    calls_.push_back(call);
    dispatcher_->Synchronize(
        request,
        [call](v1::SynchronizeResponse answer) {
          ++call->answers;
          call->answer = std::move(answer);
        },
        ++call_);
    Require(call->answers == 1 || request.wait_seconds() > 0, "a call that does not wait was not answered");
  }

  // Returns the reports of the step with which the task could be ended: of its holder, with its fence.
  static std::vector<const v1::TaskReport*> ReportsOfHolder(const TaskRecord& task, const Allowed& allowed) {
    std::vector<const v1::TaskReport*> reports;
    if (allowed.said == nullptr || task.state != TaskState::kRunning || allowed.said->worker() != task.worker)
      return reports;
    for (const v1::TaskReport& report : allowed.said->tasks())
      if (report.task() == task.id && report.fence() == task.fence) reports.push_back(&report);
    return reports;
  }

  void Compare(const Allowed& allowed) {
    std::vector<std::string> ids;
    for (const TaskRecord& task : tasks_) ids.push_back(task.id);
    const auto found = store_->GetTasks(ids);
    Require(found.ok() && found->size() == tasks_.size(), "tasks are no longer known");
    std::map<std::string, std::pair<TaskRecord, TaskRecord>> changes;
    for (size_t i = 0; i < tasks_.size(); ++i) {
      CompareTask(tasks_[i], (*found)[i], allowed);
      changes.emplace(tasks_[i].id, std::pair(tasks_[i], (*found)[i]));
    }
    for (const auto& call : calls_) {
      Require(call->answers <= 1, "a call was answered twice");
      if (call->answers == 0 || call->looked_at) continue;
      call->looked_at = true;
      CompareAnswer(*call, changes);
    }
    for (size_t i = 0; i < tasks_.size(); ++i) {
      const TaskRecord &was = tasks_[i], &now = (*found)[i];
      if (now.fence == was.fence) continue;
      bool given = false;
      for (const auto& call : calls_)
        given = given || (call->answers == 1 && call->request.worker() == now.worker &&
                          call->request.instance() == now.instance);
      Require(given, "a task is with a process that has not been answered");
    }
    tasks_ = *found;
  }

  void CompareTask(const TaskRecord& was, const TaskRecord& now, const Allowed& allowed) {
    Require(now.id == was.id && now.fence >= was.fence, "a fence has become smaller");
    if (IsTerminal(was.state)) {
      Require(now.state == was.state && now.result == was.result && now.fence == was.fence,
              "what has ended has changed");
      return;
    }
    const std::vector<const v1::TaskReport*> reports = ReportsOfHolder(was, allowed);
    if (now.state == TaskState::kDone) {
      bool earned = false;
      for (const v1::TaskReport* report : reports) {
        if (was.kind == TaskKind::kTime) {
          earned = earned || (report->has_time() && report->time().SerializeAsString() == now.result);
        } else if (report->has_build() && report->build().SerializeAsString() == now.result) {
          earned =
              earned || report->build().outcome() != v1::OK || *store_->HasBlob(report->build().binary());
        }
      }
      Require(earned && now.fence == was.fence, "a result was stored that its holder has not reported");
      ++results_;
    }
    if (now.failures > was.failures) {
      bool said = false;
      for (const v1::TaskReport* report : reports)
        said = said || (report->has_failure() || report->has_build() || report->has_time());
      Require(said, "a task was given up though its holder has not said so");
    }
    if (now.lost_workers > was.lost_workers)
      Require(allowed.workers_are_lost || (allowed.said != nullptr && allowed.said->worker() == was.worker &&
                                           allowed.said->instance() != was.instance),
              "a worker was lost that is there");
    if (now.state == TaskState::kCancelled)
      Require(!allowed.ended_job.empty(), "a task was cancelled though its job has not ended");
  }

  static void CompareAnswer(const Call& call,
                            const std::map<std::string, std::pair<TaskRecord, TaskRecord>>& changes) {
    const v1::SynchronizeRequest& request = call.request;
    std::set<std::string> finished, held;
    for (const v1::TaskReport& report : request.tasks())
      (report.has_failure() || report.has_build() || report.has_time() ? finished : held)
          .insert(report.task());
    for (const std::string& task : call.answer.accepted())
      Require(finished.contains(task), "accepted what was not reported");
    for (const std::string& task : call.answer.cancelled())
      Require(held.contains(task), "cancelled what was not held");
    for (const v1::TaskReport& report : request.tasks()) {
      const auto change = changes.find(report.task());
      if (change == changes.end() || !finished.contains(report.task())) continue;
      const TaskRecord& now = change->second.second;
      bool accepted = false;
      for (const std::string& task : call.answer.accepted()) accepted = accepted || task == report.task();
      Require(!accepted || held.contains(report.task()) || now.state != TaskState::kRunning ||
                  now.worker != request.worker() || now.instance != request.instance() ||
                  now.fence != report.fence(),
              "a worker may forget a task that is still with it");
    }
    int64_t builds = 0, times = 0;
    for (const v1::Assignment& assignment : call.answer.assignments()) {
      const auto change = changes.find(assignment.task());
      Require(change != changes.end(), "a task of nobody was given out");
      const auto& [was, now] = change->second;
      Require(now.state == TaskState::kRunning && now.fence == assignment.fence() &&
                  now.worker == request.worker() && now.instance == request.instance(),
              "a task was given to a process that does not have it");
      Require(assignment.has_build() == (now.kind == TaskKind::kBuild),
              "a task of another kind was given out");
      if (was.fence == now.fence) continue;
      Require(!call.answer.drain(), "a worker that takes nothing new was given a task");
      ++(now.kind == TaskKind::kBuild ? builds : times);
    }
    Require(
        builds <= std::max(request.free_build_slots(), 0) && times <= std::max(request.free_time_slots(), 0),
        "more tasks were given out than there are slots");
  }

  std::string folder_, uploaded_;
  TurnedClock clock_;
  DispatcherOptions options_;
  boost::asio::io_context io_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Dispatcher> dispatcher_;
  int64_t runs_ = 0, steps_ = 0, results_ = 0;
  // These fields are of the script that runs.
  int64_t call_ = 0;
  std::vector<std::string> jobs_;
  std::vector<TaskRecord> tasks_;  // as they were behind the last step
  std::vector<std::shared_ptr<Call>> calls_;
};

}  // namespace fusion
