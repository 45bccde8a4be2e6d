// A worker as the server sees it: the protocol without any work behind it.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "fusion/v1/worker.pb.h"
#include "tests/fault/simulation/event_loop.h"

namespace fusion {

// Its results say who made them and under which fence: "<worker>/<instance>/<fence>".
class SimulatedWorker {
 public:
  // Takes a request to the server, and the answer, if there is one, to the function; how is the network's
  // business.
  using Send =
      std::function<void(const v1::SynchronizeRequest&, std::function<void(const v1::SynchronizeResponse&)>)>;
  struct Traits {
    std::string name;
    std::vector<v1::DeviceDescription> devices;
    int build_slots = 2;
    double failure_rate = 0;  // of tasks that it reports as its own failure
  };
  SimulatedWorker(EventLoop& loop, Traits traits, uint64_t seed, Send send);

  void Begin();
  // Everything it holds is gone; a new process begins after a while.
  void Crash(EventLoop::Duration restart_after);
  // It does nothing for a while, as a stopped process, and then goes on with what it had.
  void Pause(EventLoop::Duration time);

  const std::string& name() const { return traits_.name; }
  // Whoever is interested: a task was begun, under a fence.
  std::function<void(const std::string& worker, const v1::Assignment&)> on_begin;
  // The server has told it to end; it begins anew.
  std::function<void(const std::string& worker)> on_told_to_end;

 private:
  struct Held {
    v1::Assignment assignment;
    v1::TaskReport report;  // running, or the result
    bool finished = false;
  };
  // Later, if this is still the same process then; not while it is stopped.
  void Later(EventLoop::Duration delay, std::function<void()> event);
  void Call();
  void Handle(const v1::SynchronizeResponse& response);
  void Begin(const v1::Assignment& assignment);
  void Finish(const std::string& task, int64_t fence);
  std::string Signature(int64_t fence) const;

  EventLoop& loop_;
  const Traits traits_;
  const Send send_;
  std::mt19937_64 random_;
  int process_ = 0;
  bool running_ = false;
  EventLoop::Duration paused_until_{0};
  int call_ = 0;  // the call in progress, or the last one
  bool calling_ = false;
  Held* Find(const std::string& task);
  void Forget(const std::string& task);
  std::vector<Held> held_;  // in the order in which it came
};

}  // namespace fusion
