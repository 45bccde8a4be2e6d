// Everything that must outlive the server process: jobs and their events, the task queue, the build cache,
// blobs, measurements and benchmark tables, tokens and the audit log. One implementation, SQLite
// (OpenSqliteStore).
//
// Every call that changes something is one transaction: when it returns OK the change is on the disk, when it
// returns an error nothing changed. Time comes from the caller; the store reads no clock.
//
// Thread safety: all calls may be made from any thread. Changes that wait at the same time go to the disk
// together, each undone alone when it fails; readers run beside them.
//
// Statuses of all calls, besides those said at each: RESOURCE_EXHAUSTED (disk full, or the size limit
// reached), DATA_LOSS (the file is damaged, or a blob does not match its digest), UNAVAILABLE (locked by
// another process for longer than the busy timeout), PERMISSION_DENIED (the file cannot be written), INTERNAL
// (other errors of the disk).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "db/store/records.h"

namespace fusion {

class Store {
 public:
  virtual ~Store() = default;

  // ---- Jobs ----

  // Adds a QUEUED job. With a request_id that is known already, changes nothing and returns that job.
  // ALREADY_EXISTS: job.id is taken by another request.
  virtual absl::StatusOr<CreatedJob> CreateJob(const JobRecord& job, Timestamp now) = 0;
  // NOT_FOUND: no such job.
  virtual absl::StatusOr<JobRecord> GetJob(const std::string& id) = 0;
  // The job that the user's request of this id made. NOT_FOUND: none.
  virtual absl::StatusOr<JobRecord> FindRequest(const std::string& user, const std::string& request_id) = 0;
  // Newest first, at most page_size (1 to 1000; 0: 50) jobs. INVALID_ARGUMENT: not a token from an earlier
  // page.
  virtual absl::StatusOr<JobPage> ListJobs(int page_size, const std::string& page_token) = 0;
  // The same of the jobs of one user.
  virtual absl::StatusOr<JobPage> ListJobsOf(const std::string& user, int page_size,
                                             const std::string& page_token) = 0;
  // NOT_FOUND; FAILED_PRECONDITION: the job has ended, or the state may not follow the present one
  // (QUEUED -> RUNNING, FAILED, CANCELLED; RUNNING -> SUCCEEDED, FAILED, CANCELLED). Returns the job as it
  // now is.
  virtual absl::StatusOr<JobRecord> UpdateJob(const std::string& id, const JobUpdate& update,
                                              Timestamp now) = 0;
  // QUEUED and RUNNING jobs, oldest first: what a server takes up again when it starts.
  virtual absl::StatusOr<std::vector<JobRecord>> UnfinishedJobs() = 0;
  // How much of their time limits jobs have used; those that have ended or are not known are left out.
  virtual absl::Status PutTimesUsed(const std::map<std::string, std::chrono::microseconds>& used) = 0;
  // As was put last; 0: nothing was.
  virtual absl::StatusOr<std::chrono::microseconds> TimeUsed(const std::string& job) = 0;

  // Returns the event's sequence: 1 for the first of the job, then one more each time. NOT_FOUND: no such
  // job.
  virtual absl::StatusOr<int64_t> AppendEvent(const std::string& job, const std::string& event,
                                              Timestamp now) = 0;
  // Events with a larger sequence, in order, at most limit. NOT_FOUND: no such job.
  virtual absl::StatusOr<std::vector<EventRecord>> EventsAfter(const std::string& job, int64_t sequence,
                                                               int limit) = 0;

  // ---- Tasks ----

  // Makes sure that the work of each spec is done, in progress or queued, and that the job is noted as
  // wanting it. Returned in the order of specs. Known work, of the same key, that is not queued again:
  //   QUEUED or RUNNING for any job; DONE or FAILED for this job; DONE builds of any job that are in the
  //   build cache.
  // Work of an earlier job that FAILED or was CANCELLED is tried anew.
  // NOT_FOUND: no such job. FAILED_PRECONDITION: the job has ended.
  virtual absl::StatusOr<std::vector<EnsuredTask>> EnsureTasks(const std::string& job,
                                                               const std::vector<TaskSpec>& specs,
                                                               Timestamp now) = 0;
  virtual absl::StatusOr<TaskRecord> GetTask(const std::string& id) = 0;
  // In the order given, those that are not known left out; without payload where they are DONE.
  virtual absl::StatusOr<std::vector<TaskRecord>> GetTasks(const std::vector<std::string>& ids) = 0;
  // QUEUED and RUNNING tasks in the order of queueing, without payload and result: what a server takes up
  // when it starts.
  virtual absl::StatusOr<std::vector<TaskRecord>> LiveTasks() = 0;
  // Gives those of the tasks that are QUEUED to the worker: they become RUNNING with the fence and the
  // attempts raised. Returned in the order given.
  virtual absl::StatusOr<std::vector<TaskRecord>> ClaimTasks(const std::vector<std::string>& ids,
                                                             const std::string& worker,
                                                             const std::string& instance, Timestamp now,
                                                             std::chrono::microseconds lease) = 0;
  // Those of the tasks that are QUEUED become FAILED with kQueueTimeout. Returns them as they now are.
  virtual absl::StatusOr<std::vector<TaskRecord>> FailQueuedTasks(const std::vector<std::string>& ids,
                                                                  const std::string& message,
                                                                  Timestamp now) = 0;
  // Extends the leases of those still RUNNING with the same fence, not beyond the end of their claims;
  // returns the others, which their holder should stop.
  virtual absl::StatusOr<std::vector<TaskHold>> RenewLeases(const std::vector<TaskHold>& holds, Timestamp now,
                                                            std::chrono::microseconds lease) = 0;
  // Stores the results of those that are RUNNING with the fence given; true for these. The others change
  // nothing.
  virtual absl::StatusOr<std::vector<bool>> CompleteTasks(const std::vector<TaskCompletion>& completions,
                                                          Timestamp now) = 0;
  absl::StatusOr<bool> CompleteTask(const TaskCompletion& completion, Timestamp now) {
    FUSION_ASSIGN_OR_RETURN(std::vector<bool> completed, CompleteTasks({completion}, now));
    return completed.front();
  }
  // The worker could not do it, through no fault of the task: QUEUED again, or FAILED after
  // RetryPolicy::failures. Returns the task as it now is; none, and changes nothing, unless it is RUNNING
  // with this fence.
  virtual absl::StatusOr<std::optional<TaskRecord>> ReleaseTask(const TaskHold& hold,
                                                                const std::string& message,
                                                                Timestamp now) = 0;
  // RUNNING tasks whose lease has ended lose their worker: QUEUED again, or FAILED after
  // RetryPolicy::lost_workers. Returns them as they now are.
  virtual absl::StatusOr<std::vector<TaskRecord>> ExpireLeases(Timestamp now) = 0;
  // The same at once, for tasks that earlier processes of this worker held.
  virtual absl::StatusOr<std::vector<TaskRecord>> LoseTasks(const std::string& worker,
                                                            const std::string& new_instance,
                                                            Timestamp now) = 0;
  // CANCELs the QUEUED and RUNNING tasks of the job that no other unfinished job wants. Returns them as they
  // were before, so that their holders can be told.
  virtual absl::StatusOr<std::vector<TaskRecord>> CancelJobTasks(const std::string& job, Timestamp now) = 0;
  // The same for all tasks that no unfinished job wants.
  virtual absl::StatusOr<std::vector<TaskRecord>> CancelOrphanTasks(Timestamp now) = 0;
  // After a restart of the server: leases of RUNNING tasks end at now + grace, so that holders can reconnect,
  // and their claims begin anew, and workers that failed a task need not wait for it; what the clock said
  // before counts for nothing, it may have been set. Returns the number of RUNNING tasks.
  virtual absl::StatusOr<int64_t> AdoptRunning(Timestamp now, std::chrono::microseconds grace) = 0;
  // The device that TIME tasks of the job are bound to, or "" when it has none yet.
  virtual absl::StatusOr<std::string> JobDevice(const std::string& job) = 0;

  // A process of the worker that was not known has come. The last few of each worker are kept.
  virtual absl::Status AddWorkerProcess(const std::string& worker, const std::string& instance) = 0;
  // Worker to its processes, in the order in which they came.
  virtual absl::StatusOr<std::map<std::string, std::vector<std::string>>> WorkerProcesses() = 0;
  // This process of the worker takes no new tasks. Ends when the worker comes back with a new process.
  virtual absl::Status SetDrained(const std::string& worker, const std::string& instance) = 0;
  // Worker to drained instance.
  virtual absl::StatusOr<std::map<std::string, std::string>> DrainedWorkers() = 0;

  // ---- Build cache, blobs, artifacts ----

  // The builds among `keys` that are known, by key. A successful build whose binary is no longer stored is
  // not known.
  virtual absl::StatusOr<std::map<std::string, BuildRecord>> FindBuilds(
      const std::vector<std::string>& keys) = 0;
  // The same; they count as used now, and stay until the job has ended.
  virtual absl::StatusOr<std::map<std::string, BuildRecord>> UseBuilds(const std::string& job,
                                                                       const std::vector<std::string>& keys,
                                                                       Timestamp now) = 0;
  // Removes binaries of builds, the least recently used first, until they have max_bytes together, and the
  // builds with them; at most `limit`, so that other changes need not wait long. Stay: those that an
  // unfinished job found in the cache or has a task for; artifacts, which are not counted either; and bytes
  // without a build unless they are from before `unreported_before`: a worker stores what it built first and
  // reports it then. The file does not become smaller: what is free in it is used again.
  virtual absl::StatusOr<BuildCacheTrim> TrimBuildCache(int64_t max_bytes, Timestamp unreported_before,
                                                        int limit) = 0;
  // Adds or replaces.
  virtual absl::Status PutBuild(const BuildRecord& build) = 0;

  // Returns the digest, "sha256:<hex>". Storing the same bytes again is harmless. INVALID_ARGUMENT:
  // expected_digest is given and differs.
  virtual absl::StatusOr<std::string> PutBlob(std::string_view data, const std::string& expected_digest,
                                              Timestamp now) = 0;
  // NOT_FOUND; DATA_LOSS: the bytes do not match the digest. Those of a build are removed then, with the
  // builds that name them, so that they are built again.
  virtual absl::StatusOr<std::string> GetBlob(const std::string& digest) = 0;
  virtual absl::StatusOr<bool> HasBlob(const std::string& digest) = 0;

  // Adds or replaces. NOT_FOUND: no such job, or no such blob.
  virtual absl::Status PutArtifact(const std::string& job, int rank, const std::string& digest) = 0;
  // The digest of the blob. NOT_FOUND: the job has no artifact of this rank.
  virtual absl::StatusOr<std::string> GetArtifact(const std::string& job, int rank) = 0;

  // ---- Measurements and devices ----

  // All in one transaction.
  virtual absl::Status AddMeasurements(const std::vector<MeasurementRecord>& measurements) = 0;
  // Newest first.
  virtual absl::StatusOr<std::vector<MeasurementRecord>> FindMeasurements(const MeasurementQuery& query) = 0;

  // INVALID_ARGUMENT: no uuid.
  virtual absl::Status UpsertDevice(const DeviceRecord& device) = 0;
  // All devices ever seen, by uuid.
  virtual absl::StatusOr<std::vector<DeviceRecord>> Devices() = 0;
  // Adds or replaces the value of (device class, driver, library, quantity, parameter).
  virtual absl::Status PutDeviceBenchmark(const DeviceBenchmarkRecord& benchmark) = 0;
  // All values of a device class and driver (empty: of any), by driver, library, quantity and parameter.
  virtual absl::StatusOr<std::vector<DeviceBenchmarkRecord>> DeviceBenchmarks(const std::string& device_class,
                                                                              const std::string& driver) = 0;

  // The statistics of the model for the key; empty: none yet.
  virtual absl::StatusOr<std::string> ModelStatistics(const ModelStatisticsKey& key) = 0;
  // Replaces them by what `change` makes of them (empty: none yet); no other change comes between. `change`
  // must not call the store.
  virtual absl::Status UpdateModelStatistics(
      const ModelStatisticsKey& key, const std::function<std::string(const std::string& statistics)>& change,
      Timestamp now) = 0;

  // Replaces the table of that routine.
  virtual absl::Status PutRoutineTable(const RoutineTablesKey& key, const RoutineTableRecord& table,
                                       Timestamp now) = 0;
  // By routine.
  virtual absl::StatusOr<std::vector<RoutineTableRecord>> RoutineTables(const RoutineTablesKey& key) = 0;

  // Classes of devices of which measured kernels, statistics of the model or tables of routine times are
  // stored; in order.
  virtual absl::StatusOr<std::vector<std::string>> ModelDevices() = 0;
  // Removes all of these of a class (empty: of all classes), whatever state of the caches, library, toolkit
  // and version they are of; all or nothing.
  virtual absl::StatusOr<ForgottenModel> ForgetModel(const std::string& device_class) = 0;

  // Families of which there are measured kernels; in order.
  virtual absl::StatusOr<std::vector<std::string>> KernelFamilies(const KernelTimesKey& key) = 0;
  // Those of the family, newest first, at most `limit`.
  virtual absl::StatusOr<std::vector<KernelTimeRecord>> KernelTimes(const KernelTimesKey& key,
                                                                    const std::string& family, int limit) = 0;
  // Replaces the contents of the kernels by what `change` makes of them: it is given the records with their
  // contents, as far as they are known, and leaves empty what is not to be stored. No other change comes
  // between; `change` must not call the store. Then the oldest kernels of all are removed until `most` are
  // left.
  virtual absl::Status UpdateKernelTimes(const KernelTimesKey& key, std::vector<KernelTimeRecord> kernels,
                                         const std::function<void(std::vector<KernelTimeRecord>*)>& change,
                                         int64_t most, Timestamp now) = 0;

  // ---- What happened ----

  // Everything that is known of when the parts of the job ran. NOT_FOUND: no such job.
  virtual absl::StatusOr<JobTraceRecord> JobTrace(const std::string& job) = 0;
  // A stage of the job's pipeline begins; returns its number. NOT_FOUND: no such job.
  virtual absl::StatusOr<int64_t> BeginStage(const std::string& job, const std::string& name,
                                             Timestamp now) = 0;
  // A number that is not known changes nothing.
  virtual absl::Status EndStage(int64_t number, Timestamp now) = 0;
  // Attempts in the order of their claims, and in that of their ends, after the given AttemptRecord::number
  // or ended_order; at most limit. What happened since one looked last, whoever did it.
  virtual absl::StatusOr<std::vector<AttemptRecord>> ClaimsAfter(int64_t number, int limit) = 0;
  virtual absl::StatusOr<std::vector<AttemptRecord>> EndsAfter(int64_t ended_order, int limit) = 0;
  // The number of the last claim and the order of the last end; 0: none.
  virtual absl::StatusOr<std::pair<int64_t, int64_t>> LastAttempts() = 0;
  // Takes a time that does not grow with what has ended.
  virtual absl::StatusOr<StoreStatistics> Statistics() = 0;

  // ---- Online tuning ----

  // Notes that a search begins: adds the tuning of tuning.key, or, if there is one, leaves all of it as it is
  // but for loads + 1. With `replace` it then gets the declaration, strategy and defaults given, a new
  // generation and no best. Returns it as it now is.
  virtual absl::StatusOr<TuningRecord> OpenTuning(const TuningRecord& tuning, bool replace,
                                                  Timestamp now) = 0;
  // NOT_FOUND.
  virtual absl::StatusOr<TuningRecord> GetTuning(const std::string& id) = 0;
  virtual absl::StatusOr<std::optional<TuningRecord>> FindTuning(const TuningKey& key) = 0;
  // The newest report first, of one program ("": of all); at most page_size (1 to 1000; 0: 100).
  // INVALID_ARGUMENT: not a token from an earlier page.
  virtual absl::StatusOr<TuningPage> ListTunings(const std::string& program, int page_size,
                                                 const std::string& page_token) = 0;
  // Those of a program's section, for any device class and context, that have a best; at most limit.
  virtual absl::StatusOr<std::vector<TuningRecord>> TuningsOfSection(const std::string& program,
                                                                     const std::string& section,
                                                                     int limit) = 0;
  // Of one generation, at most limit: the smallest mean first, or the largest; those that only failed last.
  virtual absl::StatusOr<std::vector<TuningConfigurationRecord>> TuningConfigurations(int64_t tuning,
                                                                                      int64_t generation,
                                                                                      bool largest_first,
                                                                                      int limit) = 0;
  virtual absl::StatusOr<std::vector<TuningConvergenceRecord>> TuningConvergence(int64_t tuning,
                                                                                 int64_t generation) = 0;
  // One transaction: the reports of every batch, their sums in the statistics, and the last sequence of each
  // process. A batch whose sequence is not above the last one of its process changes nothing. Takes a time
  // that does not grow with what is stored.
  virtual absl::Status CommitTunings(const std::vector<TuningBatch>& batches,
                                     const std::vector<TuningProgressUpdate>& progress, Timestamp now) = 0;
  // The sequence of the last batch stored; 0: none.
  virtual absl::StatusOr<int64_t> TuningSequence(const std::string& process) = 0;
  // A new generation without a best; the sums begin anew, the reports stay. NOT_FOUND. Returns the tuning as
  // it now is.
  virtual absl::StatusOr<TuningRecord> ResetTuning(const std::string& id) = 0;
  // Oldest first, at most page_size (1 to 10000; 0: 1000). INVALID_ARGUMENT: not a token from an earlier
  // page.
  virtual absl::StatusOr<TuningReportPage> ListTuningReports(int64_t tuning, int page_size,
                                                             const std::string& page_token) = 0;

  // ---- Tokens and the audit log ----

  // ALREADY_EXISTS: the id is taken.
  virtual absl::Status AddToken(const TokenRecord& token) = 0;
  // All, oldest first, also those that open nothing any more.
  virtual absl::StatusOr<std::vector<TokenRecord>> Tokens() = 0;
  // Notes the time; one that is revoked already stays as it is. NOT_FOUND. Returns the token as it now is.
  virtual absl::StatusOr<TokenRecord> RevokeToken(const std::string& id, Timestamp now) = 0;
  // Appends them in their order (their numbers are the store's). Of those that are OK, and of those that are
  // not, the newest `keep` stay, and for a while up to a hundredth more: who is refused often does not wash
  // out what was changed.
  virtual absl::Status AddAuditEntries(const std::vector<AuditRecord>& entries, int64_t keep) = 0;
  // As ListJobs.
  virtual absl::StatusOr<AuditPage> ListAuditEntries(int page_size, const std::string& page_token) = 0;

  // ---- Care ----

  // Writes a consistent copy to `path`, which becomes complete in one step, while the store stays in use.
  // ALREADY_EXISTS: the path is taken.
  virtual absl::Status Backup(const std::string& path) = 0;
  // Reads the whole file. DATA_LOSS says what is damaged.
  virtual absl::Status CheckIntegrity() = 0;
  // Moves the write-ahead log into the file once it has StoreOptions::checkpoint_pages; changes wait for the
  // last bit of that alone. Called several times a second by one thread; where nobody does, the log grows to
  // 256 MiB, and changes wait for all of it.
  virtual absl::Status Checkpoint() = 0;
};

struct StoreOptions {
  int readers = 3;  // reading connections
  std::chrono::milliseconds busy_timeout{5000};
  // Holds <path>.lock as long as the store is open, so that two servers never run one queue. The lock ends
  // with the process, however it ends.
  bool exclusive = true;
  int64_t max_bytes = 0;        // of the file; 0: as large as the disk allows
  int checkpoint_pages = 8192;  // of 4 KiB
  RetryPolicy retry;
  TuningRetention tuning;
};

// Opens or creates the file and brings its schema up to date; before a schema is changed the file is copied
// to <path>.v<old version>.backup. The folder must exist. UNAVAILABLE: another process holds the store.
// FAILED_PRECONDITION: written by a newer version of the program, or by another program. DATA_LOSS: no
// database, or damaged; one that was not closed in order is read whole for that. INVALID_ARGUMENT:
// ":memory:", no file.
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path,
                                                       const StoreOptions& options = {});

}  // namespace fusion
