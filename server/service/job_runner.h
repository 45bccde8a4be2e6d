// Runs the pipeline of every job on a thread pool, and keeps the job's record and events in the store.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/store/store.h"
#include "fusion/v1/optimizer.pb.h"
#include "library/catalog/catalog.h"
#include "server/dispatch/cancellation.h"
#include "server/dispatch/dispatcher.h"
#include "server/service/job_watchers.h"
#include "server/service/optimize_pipeline.h"

namespace fusion {

struct JobRunnerOptions {
  int threads = 4;             // jobs that run at once; each mostly waits for workers
  std::string dump_directory;  // see PipelineContext
  std::function<absl::StatusOr<v1::JobResult>(const v1::SubmitRequest&, const PipelineContext&)> pipeline =
      OptimizePipeline;
};

// Thread safe. The store, dispatcher and watchers outlive it.
class JobRunner {
 public:
  JobRunner(Store& store, Dispatcher& dispatcher, std::shared_ptr<const Catalog> catalog,
            JobWatchers& watchers, JobRunnerOptions options);
  // Stop().
  ~JobRunner();

  // Stores a job for a request, then starts it. A known request_id gives the job that it made. The request
  // must be valid already; `graph` describes it. Ids of requests are each user's own.
  absl::StatusOr<JobRecord> Submit(const v1::SubmitRequest& request, const v1::GraphSummary& graph,
                                   const std::string& user);
  // Starts the job if it is unfinished and not running here. NotFound: no such job.
  absl::Status EnsureRunning(const std::string& job);
  // EnsureRunning for every unfinished job.
  absl::Status ResumeAll();
  // The job is CANCELLED at once; its tasks are stopped. A job that has ended stays as it is.
  absl::StatusOr<JobRecord> Cancel(const std::string& job);
  // Stops the dispatcher, interrupts running pipelines and waits for them. Unfinished jobs and their tasks
  // stay so in the store. Not from several threads at once.
  void Stop();

 private:
  // A job that is queued or running in this process.
  struct Active {
    explicit Active(boost::asio::thread_pool& pool) : time_limit(pool) {}
    CancellationToken cancellation;
    boost::asio::steady_timer time_limit;
    bool started = false;    // guarded by JobRunner::mutex_
    bool timed_out = false;  // guarded by JobRunner::mutex_
  };

  void Start(const JobRecord& record);
  void Run(const std::string& job, const std::shared_ptr<Active>& active);
  absl::StatusOr<v1::JobResult> RunPipeline(const std::string& job, const Active& active);
  void OnTimeLimit(const std::string& job, const std::shared_ptr<Active>& active, double seconds);
  void Finish(const std::string& job, const absl::StatusOr<v1::JobResult>& result);
  absl::Status StoreEnd(const std::string& job, JobUpdate update);
  void Emit(const std::string& job, v1::JobEvent event);

  Store& store_;
  Dispatcher& dispatcher_;
  const std::shared_ptr<const Catalog> catalog_;
  JobWatchers& watchers_;
  const JobRunnerOptions options_;

  std::mutex mutex_;
  bool stopping_ = false;                                  // guarded by mutex_
  std::map<std::string, std::shared_ptr<Active>> active_;  // guarded by mutex_

  boost::asio::thread_pool timers_{1};
  boost::asio::thread_pool pool_;
};

}  // namespace fusion
