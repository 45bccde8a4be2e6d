// Runners for one device that have been started, and have the device open, before they are needed: a crash
// costs the next program no start of a process and no making of a context.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "worker/measure/runner_process.h"

namespace fusion {

struct RunnerPoolOptions {
  std::string program;  // as RunnerProcess
  SandboxPolicy policy;
  std::string device_uuid;
  int spares = 1;
  // Calls what it is given in its turn; does not call it when stopped before that. Called by the pool's
  // thread.
  using Turn = std::function<void(std::stop_token, const std::function<void()>& use)>;
  Turn with_device;  // while nothing is timed on the device
  // The turn for what disturbs no timing on the device: starting a process and compiling our kernels. Null:
  // that too is done with the device.
  Turn beside_timings;
  // `changed` is called with the number of spares whenever it has changed, from any thread, one call at a
  // time. May be null.
  std::function<void(int)> changed;
};

// Makes spares on a thread of its own, one after another, until there are as many as wanted; one that cannot
// be made is tried again after 5 s, then ever more rarely. Thread safe.
class RunnerPool {
 public:
  explicit RunnerPool(RunnerPoolOptions options);
  // Ends the spares, also one that is being made.
  ~RunnerPool();

  // Returns a spare that has just computed rightly, or null: none is ready. The caller must have the device
  // to itself. Another is made.
  std::unique_ptr<RunnerProcess> Take();
  // Returns how many spares are ready.
  int ready() const;

 private:
  void Work(std::stop_token stop);
  // Returns null when no spare can be made now.
  std::unique_ptr<RunnerProcess> Make(std::stop_token stop);

  const RunnerPoolOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable_any taken_;
  std::vector<std::unique_ptr<RunnerProcess>> ready_;  // guarded by mutex_
  std::mutex telling_;
  std::jthread thread_;  // last: uses all the others
  void Tell();
};

}  // namespace fusion
