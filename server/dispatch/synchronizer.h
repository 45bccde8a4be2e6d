// The server's side of WorkerService.Synchronize.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <map>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "db/store/store.h"
#include "fusion/v1/worker.pb.h"
#include "server/dispatch/dispatcher_options.h"
#include "server/dispatch/long_poll.h"
#include "server/dispatch/task_queue.h"
#include "server/dispatch/worker_registry.h"

namespace fusion {

// Thread safe.
class Synchronizer {
 public:
  Synchronizer(Store& store, const Clock& clock, const DispatcherOptions& options, WorkerRegistry& registry,
               TaskQueue& queue, boost::asio::any_io_executor executor);

  // See Dispatcher::Synchronize.
  void Synchronize(v1::SynchronizeRequest request, LongPolls::Done done, int64_t call = 0);
  // There may be something new for this worker.
  void Wake(const std::string& worker) { polls_.Wake(worker); }
  // There may be tasks: as many idle workers as could do those that wait are answered.
  void WakeForTasks();
  // Answers all workers, whatever they can do, if any task waits.
  void WakeAllForTasks();
  void Close() { polls_.Close(); }

 private:
  // Takes what the request says into the store and the registry. Results that are stored are named in the
  // response.
  void Accept(const v1::SynchronizeRequest& request, WorkerRegistry::Contact contact,
              v1::SynchronizeResponse& response);
  // Adds what there is to tell the worker now: tasks to stop, assignments. Returns whether any of it is new
  // to the worker.
  bool Look(const v1::SynchronizeRequest& request, v1::SynchronizeResponse& response);
  void RememberDevices(const v1::SynchronizeRequest& request);

  Store& store_;
  const Clock& clock_;
  const DispatcherOptions options_;
  WorkerRegistry& registry_;
  TaskQueue& queue_;

  std::mutex devices_mutex_;
  std::map<std::string, std::string> remembered_devices_;  // uuid to description; guarded by devices_mutex_

  LongPolls polls_;
};

}  // namespace fusion
