// The times that rule the farm.
#pragma once

#include <chrono>

namespace fusion {

struct DispatcherOptions {
  // A task whose worker is silent for so long is given to another. Workers call every `contact` while they
  // hold tasks.
  std::chrono::milliseconds lease{15000};
  std::chrono::milliseconds contact{5000};
  // A worker whose connection broke, and that does not call again within this, is lost without waiting for
  // the end of its leases.
  std::chrono::milliseconds broken_grace{5000};
  // A call of an idle worker is held no longer than this.
  std::chrono::milliseconds longest_wait{10000};
  // A worker silent for so long counts as disconnected. It must be longer than longest_wait, and not longer
  // than a lease, or a task that its device has not taken yet waits longer than one that it holds.
  std::chrono::milliseconds connected_for{15000};
  // After a restart of the server, no lease ends earlier than this, and where it left jobs unfinished nobody
  // gives up waiting for a worker or a device.
  std::chrono::milliseconds restart_grace{30000};
  // Leases are looked through once in this time: a task waits so much longer than its lease at most.
  std::chrono::milliseconds expiry_period{250};
  // A device that its worker has taken out for so long counts as lost. The worker tries it again after 5 s,
  // and then ever later.
  std::chrono::milliseconds out_patience{30000};
  // Build and Time give up when no connected worker could run their tasks for so long, or as long as the
  // job's own queue_limit says.
  std::chrono::milliseconds no_worker_patience{300000};
  // A job that waits for tasks looks once in this time, sooner when its limit is shorter, whether a connected
  // worker can run them.
  std::chrono::milliseconds look_period{1000};
  // True: the one worker is in this process, and once it has come no job waits for a device that it lacks.
  bool only_worker_is_here = false;
  // True: tasks that earlier processes queued are handed out at once; false: when a job asks for them again.
  bool resume_tasks = true;
};

}  // namespace fusion
