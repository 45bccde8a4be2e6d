// The tasks that this worker holds: running, or finished and not yet accepted by the server.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "fusion/v1/worker.pb.h"

namespace fusion {

// Thread safe.
class HeldTasks {
 public:
  // `changed` is called, without a lock, whenever there is something new to tell the server.
  explicit HeldTasks(std::function<void()> changed) : changed_(std::move(changed)) {}

  struct Started {
    bool is_new = false;  // false: it is held already (an assignment can come twice), do nothing
    std::stop_token stop;
  };
  // A newer fence of a task replaces the older, which is stopped.
  Started Start(const v1::Assignment& assignment);
  // The result of a timing is a matter of moments: its device may be offered again.
  void NearlyDone(const std::string& task, int64_t fence);
  // Takes the result of a task; one that is no longer held under this fence is forgotten.
  void Finish(v1::TaskReport report);
  // The server has stored the result or does not want it; or it wants the task stopped.
  void Forget(const std::string& task);
  void StopAll();

  std::vector<v1::TaskReport> Reports() const;
  // Returns how many tasks of a kind run.
  int Running(v1::TaskKind kind) const;
  // Returns the devices on which timings run, or wait for their turn, that are not nearly done.
  std::set<std::string> RunningDevices() const;
  bool HasFinished() const;
  bool empty() const;

 private:
  struct Held {
    v1::TaskKind kind = v1::TASK_KIND_UNSPECIFIED;
    std::string device_uuid;  // of a timing
    v1::TaskReport report;    // running, or the result
    bool nearly_done = false;
    std::stop_source stop;
  };
  const std::function<void()> changed_;
  mutable std::mutex mutex_;
  std::map<std::string, Held> held_;  // guarded by mutex_
};

}  // namespace fusion
