// Runs the pipeline of every job on a thread pool, and keeps the job's record and events in the store.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/store/store.h"
#include "fusion/v1/optimizer.pb.h"
#include "library/catalog/catalog.h"
#include "server/dispatch/cancellation.h"
#include "server/dispatch/dispatcher.h"
#include "server/jobs/job_line.h"
#include "server/jobs/job_watchers.h"
#include "server/optimize/optimize_pipeline.h"

namespace fusion {

// Returns the number of processors, and at least 8: a job waits for workers most of the time, so fewer would
// leave devices idle. A place costs a thread, and while it is taken the memory of a search (BENCHMARKS.md).
int DefaultJobPlaces();

struct JobRunnerOptions {
  // Jobs that run at once, but for jobs that wait for a device or their turn. Beyond these a quarter as many
  // places, and at least one, are kept for users who have fewer running than their share of `threads`, so
  // that nobody waits for a job of a user who came with many.
  int threads = DefaultJobPlaces();
  int most_jobs = 10000;  // jobs of all users that wait or run
  int most_jobs_of_user = 1000;
  // Time between notes of how much of their time limits jobs have used: a job may get so much more after a
  // crash.
  std::chrono::milliseconds time_used_period{2000};
  // Time between tries to store what could not be stored when a job ended, as on a full disk.
  std::chrono::milliseconds store_again_period{1000};
  std::string dump_directory;  // see PipelineContext
  std::function<absl::StatusOr<v1::JobResult>(const v1::SubmitRequest&, const PipelineContext&)> pipeline =
      OptimizePipeline;
};

// Thread safe. The store, dispatcher, watchers and metrics outlive it.
class JobRunner {
 public:
  JobRunner(Store& store, Dispatcher& dispatcher, SearchPool& searches,
            std::shared_ptr<const Catalog> catalog, JobWatchers& watchers, JobRunnerOptions options,
            ServerMetrics* metrics = nullptr);
  // Stop().
  ~JobRunner();

  // Stores a job of the user for a request, then starts it. A request_id of his that is known gives the job
  // that it made. The request must be valid already; `graph` describes it. ResourceExhausted, with a
  // google.rpc.RetryInfo: too many jobs are unfinished. `traceparent` (W3C) is the request's; the job's log
  // lines carry its trace id.
  absl::StatusOr<JobRecord> Submit(const v1::SubmitRequest& request, const v1::GraphSummary& graph,
                                   const std::string& user = "", const std::string& traceparent = "");
  // Starts the job if it is unfinished and not running here. NotFound: no such job.
  absl::Status EnsureRunning(const std::string& job);
  // Calls EnsureRunning for every unfinished job.
  absl::Status ResumeAll();
  // The job is CANCELLED at once; its tasks are stopped. A job that has ended stays as it is.
  absl::StatusOr<JobRecord> Cancel(const std::string& job);
  // Tells people what the job waits for: a worker, as no connected one can do it, and when it fails; or the
  // store to take its end. "": it does not wait.
  std::string WaitsFor(const std::string& job);
  // Returns the stage of the pipeline that a running job is in; "": it does not run here.
  std::string StageOf(const std::string& job);
  // Stops the dispatcher, interrupts running pipelines and waits for them. Unfinished jobs and their tasks
  // stay so in the store. Not from several threads at once.
  void Stop();

 private:
  // A job that is queued or running in this process.
  struct Active {
    explicit Active(boost::asio::thread_pool& pool) : time_limit(pool) {}
    CancellationToken cancellation;
    boost::asio::steady_timer time_limit;
    // Constant: whether the job has a time limit, and the time of it used before the job was started here.
    bool limited = false;
    std::chrono::microseconds used_before{0};
    std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
    bool timed_out = false;     // guarded by JobRunner::mutex_, like all below
    std::string stage;          // of the pipeline
    std::string waits_for;      // a text for people; "": nothing
    bool told_waiting = false;  // an event has said that it waits
    std::chrono::steady_clock::time_point waits_until;
  };

  void Start(const JobRecord& record);
  // Returns OK when there is room for another job of the user.
  absl::Status CheckRoom(const std::string& user);
  // Runs the job that is next.
  void RunNext();
  void Run(const std::string& job, const std::shared_ptr<Active>& active);
  absl::StatusOr<v1::JobResult> RunPipeline(const std::string& job, Active& active);
  // At most so many jobs wait for a device without a place. Each has a thread, with its memory.
  static constexpr int kMostWaiting = 8;
  // The job leaves its place to others while it waits for something else. See
  // PipelineContext::waits_for_device.
  void LeavePlace(const std::string& job);
  // Wakes jobs that wait for a place: there may be more.
  void OfferPlaces();
  // Blocks until the job has a place again, or is cancelled.
  void ReturnToPlace(const std::string& job, const Active& active);
  // Notes how much of their time limits the jobs of this process have used; again after a period.
  void KeepTimesUsed();
  void PutTimesUsed();
  // Returns true the first time that the job waits for something: people are told once.
  bool SetWaitsFor(const std::string& job, const std::string& what, std::chrono::milliseconds left);
  // The job's time limit means nothing any more.
  void StopTimer(std::shared_ptr<Active> active);
  void OnTimeLimit(const std::string& job, const std::shared_ptr<Active>& active, double seconds);
  // Stores how the job ended and cancels the tasks that it left. What cannot be done now is tried again until
  // it is (KeepStoring); it returns false then, and the job's entry in active_ is to be kept.
  bool Finish(const std::string& job, absl::StatusOr<v1::JobResult> result);
  // Stores the end, or at least that it could not be stored. OK too where nothing is left to store.
  absl::Status StoreResult(const std::string& job, const absl::StatusOr<v1::JobResult>& result);
  absl::Status StoreEnd(const std::string& job, JobUpdate update);
  // Cancels the tasks of a job that has ended. False: it has to be tried again.
  bool CancelTasks(const std::string& job);
  // Tries again, from time to time, as long as there are ends that are not stored or tasks to cancel.
  void KeepStoring();
  void StoreAgain();
  void Emit(const std::string& job, v1::JobEvent event);

  Store& store_;
  Dispatcher& dispatcher_;
  SearchPool& searches_;
  const std::shared_ptr<const Catalog> catalog_;
  JobWatchers& watchers_;
  const JobRunnerOptions options_;
  ServerMetrics* const metrics_;  // may be null

  std::mutex mutex_;
  bool stopping_ = false;                                  // guarded by mutex_
  std::map<std::string, std::shared_ptr<Active>> active_;  // guarded by mutex_
  JobLine line_;                                           // guarded by mutex_; the jobs of active_
  std::condition_variable place_;                          // one may be free
  // Jobs that have ended, and how; none: the end is stored, and their tasks are to be cancelled. Guarded by
  // mutex_.
  std::map<std::string, std::optional<absl::StatusOr<v1::JobResult>>> left_to_store_;
  std::string why_not_stored_;  // guarded by mutex_; the last reason

  boost::asio::thread_pool timers_{1};
  boost::asio::steady_timer times_used_{timers_};   // used by the thread of timers_ alone, once it is armed
  boost::asio::steady_timer store_again_{timers_};  // used by the thread of timers_ alone, like the next
  bool stores_again_ = false;                       // the timer is set
  boost::asio::thread_pool pool_;
};

}  // namespace fusion
