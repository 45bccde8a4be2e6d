#include "tests/fault/simulation/simulated_worker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

constexpr std::chrono::seconds kCallTimeout{5};
constexpr std::chrono::seconds kContact{5};
constexpr std::chrono::milliseconds kSoon{50};
// The server has taken a late request of an earlier process for a newer one, and tells this one to end; its
// supervisor starts another.
constexpr std::chrono::seconds kRestart{1};

}  // namespace

SimulatedWorker::SimulatedWorker(EventLoop& loop, Traits traits, uint64_t seed, Send send)
    : loop_(loop), traits_(std::move(traits)), send_(std::move(send)), random_(seed) {}

void SimulatedWorker::Later(EventLoop::Duration delay, std::function<void()> event) {
  loop_.After(delay, [this, process = process_, event = std::move(event)] {
    if (!running_ || process != process_) return;
    if (loop_.now() < paused_until_) {
      Later(paused_until_ - loop_.now(), event);
      return;
    }
    event();
  });
}

void SimulatedWorker::Begin() {
  ++process_;
  running_ = true;
  calling_ = false;
  held_.clear();
  Call();
}

void SimulatedWorker::Crash(EventLoop::Duration restart_after) {
  running_ = false;
  const int crashed = ++process_;
  loop_.After(restart_after, [this, crashed] {
    if (!running_ && process_ == crashed) Begin();
  });
}

void SimulatedWorker::Pause(EventLoop::Duration time) {
  paused_until_ = std::max(paused_until_, loop_.now() + time);
}

SimulatedWorker::Held* SimulatedWorker::Find(const std::string& task) {
  const auto found = std::find_if(held_.begin(), held_.end(),
                                  [&](const Held& held) { return held.assignment.task() == task; });
  return found == held_.end() ? nullptr : &*found;
}

void SimulatedWorker::Forget(const std::string& task) {
  std::erase_if(held_, [&](const Held& held) { return held.assignment.task() == task; });
}

std::string SimulatedWorker::Signature(int64_t fence) const {
  return absl::StrCat(traits_.name, "/", process_, "/", fence);
}

void SimulatedWorker::Call() {
  if (calling_) return;
  v1::SynchronizeRequest request;
  request.set_worker(traits_.name);
  request.set_instance(absl::StrCat(process_));
  for (const v1::DeviceDescription& device : traits_.devices) *request.add_devices() = device;
  int builds = 0, times = 0;
  for (const Held& held : held_) {
    *request.add_tasks() = held.report;
    if (!held.finished) ++(held.assignment.has_build() ? builds : times);
  }
  request.set_free_build_slots(std::max(0, traits_.build_slots - builds));
  request.set_free_time_slots(std::max(0, static_cast<int>(traits_.devices.size()) - times));
  calling_ = true;
  const int call = ++call_;
  const int process = process_;
  send_(request, [this, call, process](const v1::SynchronizeResponse& response) {
    if (process != process_) return;
    Later(EventLoop::Duration(0), [this, call, response] {
      // An answer that comes after the call was given up is not read.
      if (!calling_ || call != call_) return;
      calling_ = false;
      Handle(response);
    });
  });
  Later(kCallTimeout, [this, call] {
    if (!calling_ || call != call_) return;
    calling_ = false;
    Call();
  });
}

void SimulatedWorker::Handle(const v1::SynchronizeResponse& response) {
  for (const std::string& task : response.accepted()) Forget(task);
  for (const std::string& task : response.cancelled()) Forget(task);
  if (response.replaced()) {
    if (on_told_to_end) on_told_to_end(traits_.name);
    return Crash(kRestart);
  }
  for (const v1::Assignment& assignment : response.assignments()) Begin(assignment);
  const bool finished =
      std::any_of(held_.begin(), held_.end(), [](const Held& held) { return held.finished; });
  const auto next = EventLoop::Seconds(std::min(response.next_contact_seconds(), 5.0));
  Later(finished ? EventLoop::Duration(kSoon)
                 : std::clamp(next, EventLoop::Duration(kSoon), EventLoop::Duration(kContact)),
        [this] { Call(); });
}

void SimulatedWorker::Begin(const v1::Assignment& assignment) {
  if (const Held* known = Find(assignment.task()); known != nullptr) {
    if (known->assignment.fence() >= assignment.fence()) return;
    Forget(assignment.task());
  }
  Held& held = held_.emplace_back();
  held.assignment = assignment;
  held.report.set_task(assignment.task());
  held.report.set_fence(assignment.fence());
  held.report.set_running(true);
  if (on_begin) on_begin(traits_.name, assignment);
  const double seconds = std::uniform_real_distribution<double>(0.2, 8)(random_);
  Later(EventLoop::Seconds(seconds),
        [this, task = assignment.task(), fence = assignment.fence()] { Finish(task, fence); });
}

void SimulatedWorker::Finish(const std::string& task, int64_t fence) {
  Held* const found = Find(task);
  if (found == nullptr || found->assignment.fence() != fence || found->finished) return;
  Held& held = *found;
  held.finished = true;
  if (std::bernoulli_distribution(traits_.failure_rate)(random_)) {
    held.report.set_failure("no compiler today");
  } else if (held.assignment.has_build()) {
    held.report.mutable_build()->set_outcome(v1::COMPILE_ERROR);
    held.report.mutable_build()->set_log(Signature(fence));
  } else {
    held.report.mutable_time()->add_programs()->set_name(Signature(fence));
  }
  Call();
}

}  // namespace fusion
