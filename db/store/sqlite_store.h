// The SQLite implementation of Store. Private to db/store; its parts are in sqlite_jobs.cc, sqlite_tasks.cc,
// sqlite_task_claims.cc, sqlite_attempts.cc, sqlite_statistics.cc, sqlite_builds.cc, sqlite_build_cache.cc,
// sqlite_measurements.cc, sqlite_tunings.cc, sqlite_tuning_reports.cc and sqlite_identity.cc.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "db/store/file_writeback.h"
#include "db/store/group_commit.h"
#include "db/store/sqlite_database.h"
#include "db/store/store.h"
#include "db/store/store_lock.h"

namespace fusion {

class SqliteStore final : public Store {
 public:
  static absl::StatusOr<std::unique_ptr<SqliteStore>> Open(const std::string& path,
                                                           const StoreOptions& options);
  ~SqliteStore() override;

  absl::StatusOr<CreatedJob> CreateJob(const JobRecord& job, Timestamp now) override;
  absl::StatusOr<JobRecord> GetJob(const std::string& id) override;
  absl::StatusOr<JobRecord> FindRequest(const std::string& user, const std::string& request_id) override;
  absl::StatusOr<JobPage> ListJobs(int page_size, const std::string& page_token) override;
  absl::StatusOr<JobPage> ListJobsOf(const std::string& user, int page_size,
                                     const std::string& page_token) override;
  absl::StatusOr<JobRecord> UpdateJob(const std::string& id, const JobUpdate& update, Timestamp now) override;
  absl::StatusOr<std::vector<JobRecord>> UnfinishedJobs() override;
  absl::Status PutTimesUsed(const std::map<std::string, std::chrono::microseconds>& used) override;
  absl::StatusOr<std::chrono::microseconds> TimeUsed(const std::string& job) override;
  absl::StatusOr<int64_t> AppendEvent(const std::string& job, const std::string& event,
                                      Timestamp now) override;
  absl::StatusOr<std::vector<EventRecord>> EventsAfter(const std::string& job, int64_t sequence,
                                                       int limit) override;

  absl::StatusOr<std::vector<EnsuredTask>> EnsureTasks(const std::string& job,
                                                       const std::vector<TaskSpec>& specs,
                                                       Timestamp now) override;
  absl::StatusOr<TaskRecord> GetTask(const std::string& id) override;
  absl::StatusOr<std::vector<TaskRecord>> GetTasks(const std::vector<std::string>& ids) override;
  absl::StatusOr<std::vector<TaskRecord>> LiveTasks() override;
  absl::StatusOr<std::vector<TaskRecord>> ClaimTasks(const std::vector<std::string>& ids,
                                                     const std::string& worker, const std::string& instance,
                                                     Timestamp now, std::chrono::microseconds lease) override;
  absl::StatusOr<std::vector<TaskRecord>> FailQueuedTasks(const std::vector<std::string>& ids,
                                                          const std::string& message, Timestamp now) override;
  absl::StatusOr<std::vector<TaskHold>> RenewLeases(const std::vector<TaskHold>& holds, Timestamp now,
                                                    std::chrono::microseconds lease) override;
  absl::StatusOr<std::vector<bool>> CompleteTasks(const std::vector<TaskCompletion>& completions,
                                                  Timestamp now) override;
  absl::StatusOr<std::optional<TaskRecord>> ReleaseTask(const TaskHold& hold, const std::string& message,
                                                        Timestamp now) override;
  absl::StatusOr<std::vector<TaskRecord>> ExpireLeases(Timestamp now) override;
  absl::StatusOr<std::vector<TaskRecord>> LoseTasks(const std::string& worker,
                                                    const std::string& new_instance, Timestamp now) override;
  absl::StatusOr<std::vector<TaskRecord>> CancelJobTasks(const std::string& job, Timestamp now) override;
  absl::StatusOr<std::vector<TaskRecord>> CancelOrphanTasks(Timestamp now) override;
  absl::StatusOr<int64_t> AdoptRunning(Timestamp now, std::chrono::microseconds grace) override;
  absl::StatusOr<std::string> JobDevice(const std::string& job) override;
  absl::Status AddWorkerProcess(const std::string& worker, const std::string& instance) override;
  absl::StatusOr<std::map<std::string, std::vector<std::string>>> WorkerProcesses() override;
  absl::Status SetDrained(const std::string& worker, const std::string& instance) override;
  absl::StatusOr<std::map<std::string, std::string>> DrainedWorkers() override;

  absl::StatusOr<std::map<std::string, BuildRecord>> FindBuilds(
      const std::vector<std::string>& keys) override;
  absl::StatusOr<std::map<std::string, BuildRecord>> UseBuilds(const std::string& job,
                                                               const std::vector<std::string>& keys,
                                                               Timestamp now) override;
  absl::StatusOr<BuildCacheTrim> TrimBuildCache(int64_t max_bytes, Timestamp unreported_before,
                                                int limit) override;
  absl::Status PutBuild(const BuildRecord& build) override;
  absl::StatusOr<std::string> PutBlob(std::string_view data, const std::string& expected_digest,
                                      Timestamp now) override;
  absl::StatusOr<std::string> GetBlob(const std::string& digest) override;
  absl::StatusOr<bool> HasBlob(const std::string& digest) override;
  absl::Status PutArtifact(const std::string& job, int rank, const std::string& digest) override;
  absl::StatusOr<std::string> GetArtifact(const std::string& job, int rank) override;

  absl::Status AddMeasurements(const std::vector<MeasurementRecord>& measurements) override;
  absl::Status UpsertDevice(const DeviceRecord& device) override;
  absl::StatusOr<std::vector<DeviceRecord>> Devices() override;
  absl::Status PutDeviceBenchmark(const DeviceBenchmarkRecord& benchmark) override;
  absl::StatusOr<std::vector<DeviceBenchmarkRecord>> DeviceBenchmarks(const std::string& device_class,
                                                                      const std::string& driver) override;
  absl::Status PutRoutineTable(const RoutineTablesKey& key, const RoutineTableRecord& table,
                               Timestamp now) override;
  absl::StatusOr<std::vector<RoutineTableRecord>> RoutineTables(const RoutineTablesKey& key) override;
  absl::StatusOr<std::vector<std::string>> ModelDevices() override;
  absl::StatusOr<ForgottenModel> ForgetModel(const std::string& device_class) override;
  absl::StatusOr<std::vector<std::string>> KernelFamilies(const KernelTimesKey& key) override;
  absl::StatusOr<std::vector<KernelTimeRecord>> KernelTimes(const KernelTimesKey& key,
                                                            const std::string& family, int limit) override;
  absl::Status UpdateKernelTimes(const KernelTimesKey& key, std::vector<KernelTimeRecord> kernels,
                                 const std::function<void(std::vector<KernelTimeRecord>*)>& change,
                                 int64_t most, Timestamp now) override;
  absl::StatusOr<std::string> ModelStatistics(const ModelStatisticsKey& key) override;
  absl::Status UpdateModelStatistics(const ModelStatisticsKey& key,
                                     const std::function<std::string(const std::string&)>& change,
                                     Timestamp now) override;

  absl::StatusOr<JobTraceRecord> JobTrace(const std::string& job) override;
  absl::StatusOr<int64_t> BeginStage(const std::string& job, const std::string& name, Timestamp now) override;
  absl::Status EndStage(int64_t number, Timestamp now) override;
  absl::StatusOr<std::vector<AttemptRecord>> ClaimsAfter(int64_t number, int limit) override;
  absl::StatusOr<std::vector<AttemptRecord>> EndsAfter(int64_t ended_order, int limit) override;
  absl::StatusOr<std::pair<int64_t, int64_t>> LastAttempts() override;
  absl::StatusOr<StoreStatistics> Statistics() override;
  absl::StatusOr<TuningRecord> OpenTuning(const TuningRecord& tuning, bool replace, Timestamp now) override;
  absl::StatusOr<TuningRecord> GetTuning(const std::string& id) override;
  absl::StatusOr<std::optional<TuningRecord>> FindTuning(const TuningKey& key) override;
  absl::StatusOr<TuningPage> ListTunings(const std::string& program, int page_size,
                                         const std::string& page_token) override;
  absl::StatusOr<std::vector<TuningRecord>> TuningsOfSection(const std::string& program,
                                                             const std::string& section, int limit) override;
  absl::StatusOr<std::vector<TuningConfigurationRecord>> TuningConfigurations(int64_t tuning,
                                                                              int64_t generation,
                                                                              bool largest_first,
                                                                              int limit) override;
  absl::StatusOr<std::vector<TuningConvergenceRecord>> TuningConvergence(int64_t tuning,
                                                                         int64_t generation) override;
  absl::Status CommitTunings(const std::vector<TuningBatch>& batches,
                             const std::vector<TuningProgressUpdate>& progress, Timestamp now) override;
  absl::StatusOr<int64_t> TuningSequence(const std::string& process) override;
  absl::StatusOr<TuningRecord> ResetTuning(const std::string& id) override;
  absl::StatusOr<TuningReportPage> ListTuningReports(int64_t tuning, int page_size,
                                                     const std::string& page_token) override;

  absl::Status AddToken(const TokenRecord& token) override;
  absl::StatusOr<std::vector<TokenRecord>> Tokens() override;
  absl::StatusOr<TokenRecord> RevokeToken(const std::string& id, Timestamp now) override;
  absl::Status AddAuditEntries(const std::vector<AuditRecord>& entries, int64_t keep) override;
  absl::StatusOr<AuditPage> ListAuditEntries(int page_size, const std::string& page_token) override;

  absl::Status Backup(const std::string& path) override;
  absl::Status CheckIntegrity() override;
  absl::Status Checkpoint() override;

 private:
  SqliteStore(std::string path, const StoreOptions& options) : path_(std::move(path)), options_(options) {}

  // Runs body(database), which returns a Status or StatusOr, as one transaction on the writing connection. An
  // error undoes everything. The body may run twice, if what it did at first was undone; it must not keep
  // anything from the first time.
  template <typename Body>
  std::invoke_result_t<Body, Database&> Write(Body&& body, Urgency urgency = Urgency::kBulk) {
    std::optional<std::invoke_result_t<Body, Database&>> result;
    absl::Status written = writes_.Run(
        [&](Database& database) {
          result.emplace(body(database));
          return StatusOf(*result);
        },
        urgency);
    if (!written.ok()) return written;
    return *std::move(result);
  }
  static const absl::Status& StatusOf(const absl::Status& status) { return status; }
  template <typename Value>
  static const absl::Status& StatusOf(const absl::StatusOr<Value>& result) {
    return result.status();
  }

  // A reading connection for one call. The constructor waits until one is free.
  class Reader {
   public:
    explicit Reader(SqliteStore& store);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    Database* operator->() { return database_.get(); }
    Database& operator*() { return *database_; }

   private:
    SqliteStore& store_;
    std::unique_ptr<Database> database_;
  };
  // Checks, before the database is open, whether the files can be what the last owner left.
  absl::Status CheckFiles() const;
  // Checks the pages of an open database that was not closed in order.
  absl::Status QuickCheck();

  // Blobs that were found damaged and have not been stored anew, and how many were found and were stored
  // anew.
  std::mutex damage_mutex_;
  std::set<std::string> damaged_;  // guarded by damage_mutex_, as the next two
  int64_t damaged_blobs_ = 0, rebuilt_blobs_ = 0;

  // These fields are constant after Open.
  const std::string path_;
  const StoreOptions options_;
  std::unique_ptr<StoreLock> lock_;
  bool opened_ = false;
  std::unique_ptr<FileWriteback> writeback_;  // outlives the connections

  std::unique_ptr<Database> writer_;  // used by writes_ alone after Open
  GroupCommit writes_;

  std::mutex checkpoint_mutex_;
  std::unique_ptr<Database> checkpointer_;  // guarded by checkpoint_mutex_ after Open
  int checkpointed_pages_ = 0;  // guarded by checkpoint_mutex_; pages of the log when it was last moved

  std::mutex readers_mutex_;
  std::condition_variable reader_free_;
  std::vector<std::unique_ptr<Database>> readers_;  // guarded by readers_mutex_; those not in use
};

// Columns of the table tasks in the order that ReadTask expects: these, and one of the three ways to end
// them.
extern const char kTaskColumns[];
extern const char kTaskWork[];
extern const char kNoTaskWork[];       // traceparent, payload and result are left empty
extern const char kTaskWorkAsEnded[];  // traceparent is left empty, and the payload where there is a result
TaskRecord ReadTask(const Statement& row);
absl::StatusOr<std::vector<TaskRecord>> ReadTasks(Statement query);
const char* TaskKindName(TaskKind kind);

// These calls note a claim of the task, and the end of the attempt that the fence tells, inside the caller's
// transaction. `how` is DONE, WORKER_FAILED (the worker said so), LEASE_EXPIRED, WORKER_GONE (a new process
// came, or its connection broke) or CANCELLED.
absl::Status BeginAttempt(Database& database, const std::string& task);
absl::Status EndAttempt(Database& database, const TaskHold& attempt, std::string_view how, Timestamp now);

// Notes the traceparent of a new job, inside the caller's transaction.
absl::Status SetTraceParent(Database& database, const JobRecord& job);

// Does what BuildStore::FindBuilds does, on any connection.
absl::StatusOr<std::map<std::string, BuildRecord>> SelectBuilds(Database& database,
                                                                const std::vector<std::string>& keys);

// Adds or replaces a line of the build cache, inside the caller's transaction.
absl::Status InsertBuild(Database& database, const BuildRecord& build);

}  // namespace fusion
