// Dispatcher is the farm as the rest of the server sees it: builds and timings go in, results come out,
// whichever workers do them.
//
// Everything that a worker or a job has been told is in the store first, so a server that is killed goes on
// where it was when it is started again: tasks stay queued or with their holders, results stay known.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "db/store/store.h"
#include "fusion/v1/device.pb.h"
#include "fusion/v1/optimizer.pb.h"
#include "fusion/v1/worker.pb.h"
#include "server/dispatch/cancellation.h"
#include "server/dispatch/completion_board.h"
#include "server/dispatch/device_jobs.h"
#include "server/dispatch/dispatcher_options.h"
#include "server/dispatch/gate.h"
#include "server/dispatch/synchronizer.h"
#include "server/dispatch/task_queue.h"
#include "server/dispatch/worker_registry.h"

namespace fusion {

struct BuildOutcome {
  v1::BuildResult result;
  bool reused = false;  // from the build cache, or merged with work that was known already
};

// Thread safe. Jobs are named as in the store ("jobs/<hex>") and must exist there, unfinished.
class Dispatcher {
 public:
  // The store, the clock and the context behind the executor must outlive the dispatcher. Timers and answers
  // to held calls run on the executor, which needs at least one thread.
  Dispatcher(Store& store, boost::asio::any_io_executor executor, const Clock& clock,
             const DispatcherOptions& options = {});
  ~Dispatcher();  // Stop()
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // Takes up what an earlier server process left: holders of tasks get time to reconnect, tasks that no
  // unfinished job wants are cancelled. Then looks for lost workers from time to time.
  absl::Status Start();
  // Answers held calls; blocking calls return UNAVAILABLE; tasks and jobs stay as they are, for the next
  // process. Must not be called from a callback.
  void Stop();

  // Looks for lost workers and for tasks that have waited too long. Start lets a timer do it every
  // expiry_period.
  void Tick();

  // ---- For workers ----

  // Takes the worker's state and calls done once with what it should do: at once when there is something to
  // tell (results stored, tasks to stop, assignments, drain), else when something comes up or wait_seconds
  // (bounded by the options) are over. done may run before this returns, or later on the executor. An
  // assignment can come twice, with the same fence, when the worker does not list it: it is the same task,
  // not a second one.
  // `call` is the number of the call in the order of arrival, for CallBroke; 0: unknown.
  void Synchronize(v1::SynchronizeRequest request, std::function<void(v1::SynchronizeResponse)> done,
                   int64_t call = 0);
  // The connection of a call broke before the answer: a worker whose last call it was and that does not call
  // again within `broken_grace` is lost, before its leases end.
  void CallBroke(const std::string& worker, int64_t call);

  // Called in the thread of a job whenever one of the calls below begins to wait because no connected worker
  // can run its tasks: `what` is for people, the call is given up when `left` is over. It is called with an
  // empty `what` when the call waits no longer. It must be set before there are jobs.
  using TellWaiting =
      std::function<void(const std::string& job, const std::string& what, std::chrono::milliseconds left)>;
  void OnWaiting(TellWaiting tell) { tell_waiting_ = std::move(tell); }

  // ---- For job threads: these block ----

  // done + not yet done = total; failed: done with another outcome than OK.
  using BuildProgress = std::function<void(int done, int total, int reused, int failed)>;
  // Waits until all are built: found in the build cache, merged with the same build in flight, or built by
  // workers. Outcomes are in the order of the tasks; a task that does not compile is an outcome, no error. A
  // build given up because workers failed or were lost has the outcome WORKER_LOST. CANCELLED: the token or
  // the job was cancelled; the job's tasks have been cancelled. UNAVAILABLE: the dispatcher is stopped, or no
  // connected worker could run the tasks for longer than the patience of the options; it comes at once where
  // the only worker that there will be does not build for the target.
  absl::StatusOr<std::vector<BuildOutcome>> Build(const std::string& job,
                                                  const std::vector<v1::BuildTask>& tasks,
                                                  CancellationToken token,
                                                  const BuildProgress& progress = nullptr);

  // Queues work without waiting for it; a later Build or Time of the same tasks finds it. Statuses are
  // those of Store::EnsureTasks.
  absl::Status Enqueue(const std::string& job, const std::vector<TaskSpec>& specs);

  // `reused` says that an earlier process of the server had made the timing for this job.
  using TimeResultCallback = std::function<void(int index, const v1::TimeResult& result, bool reused)>;
  // Queues all for the device and hands over results as they come, in the calling thread. A timing given up
  // because workers failed or were lost says so in TimeResult.failure. Statuses are those of Build. ABORTED:
  // the device is lost (its workers are gone or draining, or have taken it out) and another of its kind is
  // there, which ChooseDevice gives the job from now on; the job's tasks have been cancelled.
  absl::Status Time(const std::string& job, const std::vector<v1::TimeTask>& tasks,
                    const v1::DeviceDescription& device, CancellationToken token,
                    const TimeResultCallback& on_result);

  // Returns a device of a connected worker. TARGET_AUTO: a CUDA device if there is one; arch "": any, else
  // one of `arch` or, while none of it is connected, of `nearest_arch`. Among several it takes the kind with
  // the highest bandwidth, and the device of it that is least in demand (DeviceJobs) by jobs until their
  // JobEnded; equals take turns. A job whose timings are bound to a device gets that one. Waits up to
  // `patience` for a device to connect (Patience). kind: only devices whose name has this in it, in any case;
  // "": the fastest. UNAVAILABLE: there is none; says what is missing and what is connected. A job whose
  // device has not come back yet to a restarted server gets UNAVAILABLE too, until that is over.
  absl::StatusOr<v1::DeviceDescription> ChooseDevice(v1::Target target, const std::string& arch,
                                                     std::chrono::milliseconds patience,
                                                     CancellationToken token, const std::string& job = "",
                                                     const std::string& nearest_arch = "",
                                                     const std::string& kind = "");
  // Returns OK when a device is connected that ChooseDevice could give, else UNAVAILABLE as it does.
  absl::Status FindDevice(v1::Target target, const std::string& arch, const std::string& nearest_arch,
                          const std::string& kind) const;
  // Returns the name of the one kind of device that is called so, or has this in its name, in any case.
  // INVALID_ARGUMENT: there are none or several; lists the kinds. Returns `wanted` while none has been seen.
  absl::StatusOr<std::string> FindKind(v1::Target target, const std::string& wanted) const;

  // Returns how long to wait for a worker or device instead of `wanted`, unless that is 0: workers may not
  // have come back yet to a server that was restarted (DispatcherOptions::restart_grace).
  std::chrono::milliseconds Patience(std::chrono::milliseconds wanted) const;
  // Returns DispatcherOptions::only_worker_is_here.
  bool only_worker_is_here() const { return options_.only_worker_is_here; }

  // Returns a sound device of the same name and arch and another uuid that a connected worker has, if
  // possible a worker without `device`; none if there is no such device.
  std::optional<v1::DeviceDescription> AnotherDevice(const v1::DeviceDescription& device) const;

  // ---- For operators and the service ----

  // Stops the tasks of the job that no other unfinished job wants, and tells their holders. Does not change
  // the job.
  absl::Status CancelJob(const std::string& job);
  // Forgets the job, which has no device any more.
  void JobEnded(const std::string& job);
  // Returns the workers, ordered by name.
  std::vector<v1::Worker> Workers() const;
  bool running() const { return !stopped(); }
  // The worker finishes what it has and gets no more, until it comes back as a new process. NOT_FOUND.
  absl::StatusOr<v1::Worker> Drain(const std::string& name);

 private:
  // `task` is the work of specs[index], now DONE or FAILED.
  using TaskEnded = std::function<absl::Status(int index, const TaskRecord& task, bool reused)>;
  // Queues the specs and calls ended for each once it has ended; specs of one key end together.
  absl::Status RunTasks(const std::string& job, const std::vector<TaskSpec>& specs,
                        const CancellationToken& token, const TaskEnded& ended);
  // Returns the names of devices that there are or were, also under earlier processes of the server; their
  // workers may not have come back yet.
  std::set<std::string> KnownKinds(v1::Target target) const;
  // A task that is waited for needs this of a worker.
  struct Need {
    std::string task;
    TaskKind kind = TaskKind::kBuild;
    TaskRequirements requirements;
  };
  struct TaskWait;
  // Cancels the tasks of a job; where that fails the log says so.
  void CancelTasks(const std::string& job);
  // Tells whoever listens that the job waits for no worker any more, if it was told that it does.
  void WaitsNoLonger(TaskWait* wait);
  // Takes the ends of those of the tasks that have ended; an error ends RunTasks.
  absl::Status TakeEnded(const std::vector<std::string>& keys, TaskWait* wait);
  // Ends the wait where no worker will run what is queued, and tells once that it waits; an error ends
  // RunTasks.
  absl::Status CheckWorkers(TaskWait* wait);
  // Returns the tasks that no worker has: a worker that takes nothing new finishes what it has.
  absl::StatusOr<std::map<std::string, Need>> Queued(const std::map<std::string, Need>& waiting) const;
  // Returns the device that a queued timing of the job is bound to, if it is lost and another of its kind is
  // there.
  std::optional<v1::DeviceDescription> LostDevice(const std::map<std::string, Need>& queued) const;
  bool SomeoneCanRun(const std::map<std::string, Need>& waiting) const;
  // Returns whether there are builds in `queued`, which no worker can do, and the only worker that there will
  // be has come.
  bool NoCompilerWillCome(const std::map<std::string, Need>& queued) const;
  // Returns whether the only worker that there will be has come without such a device.
  bool NoDeviceWillCome(v1::Target target, const std::string& arch, const std::string& nearest_arch,
                        const std::string& kind) const;
  // Returns a function that tells whether a device is called `kind` ("": any is).
  std::function<bool(const v1::DeviceDescription&)> OfKind(v1::Target target, const std::string& kind) const;
  // Returns the devices that ChooseDevice may give.
  std::vector<v1::DeviceDescription> Devices(v1::Target target, const std::string& arch,
                                             const std::string& nearest_arch, const std::string& kind) const;
  absl::Status NoDevice(v1::Target target, const std::string& arch, const std::string& nearest_arch,
                        const std::string& kind) const;
  // Returns the device that the job gets of these, which are all of one kind; the job has it from now on.
  // Job "" is that of a caller that only looks. mutex_ is held.
  v1::DeviceDescription LeastUsed(const std::vector<v1::DeviceDescription>& devices, const std::string& job,
                                  const std::string& user);
  bool stopped() const;
  // Returns whether workers may not have come back yet to a server that left jobs unfinished when it was
  // restarted lately.
  bool WorkersMayReturn() const { return clock_.Now() < workers_may_return_until_; }
  void ArmExpiryTimer();

  Store& store_;
  const Clock& clock_;
  const DispatcherOptions options_;
  Timestamp workers_may_return_until_{};  // constant after Start
  TellWaiting tell_waiting_;              // may be empty
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  WorkerRegistry registry_;
  CompletionBoard board_;
  std::atomic<int> ticks_ = 0;
  TaskQueue queue_;
  Synchronizer synchronizer_;

  mutable std::mutex mutex_;
  bool stopped_ = false;                    // guarded by mutex_
  boost::asio::steady_timer expiry_timer_;  // guarded by mutex_
  DeviceJobs device_jobs_;                  // until the jobs end; guarded by mutex_
  // Devices by job, which gets none of them again; guarded by mutex_.
  std::map<std::string, std::set<std::string>> lost_devices_;
};

}  // namespace fusion
