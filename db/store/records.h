// The store keeps these plain values. Messages are kept as the bytes that their sender serialised: the store
// knows no protobuf. Each field says which message of proto/fusion/v1 its bytes are.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"

namespace fusion {

// Numbers equal those of v1::JobState.
enum class JobState { kQueued = 1, kRunning = 2, kSucceeded = 3, kFailed = 4, kCancelled = 5 };
// SUCCEEDED, FAILED and CANCELLED: a job in such a state never changes again.
bool IsTerminal(JobState state);
const char* JobStateName(JobState state);

struct JobRecord {
  std::string id;          // "jobs/<hex>"; empty on CreateJob: the store makes one
  std::string user;        // who submitted it; empty where callers need not say who they are
  std::string request_id;  // chosen by the client, unique among those of the user; empty: none
  JobState state = JobState::kQueued;
  int priority = 0;  // of its tasks among the tasks of the user's other jobs; larger first
  std::chrono::microseconds queue_limit{0};  // how long each task may wait for a worker; 0: for ever
  std::string target;                        // name of a v1::Target
  std::string graph_name;
  std::string graph_hash;
  std::string graph_summary;  // v1::GraphSummary
  std::string request;        // v1::SubmitRequest
  std::string error;          // google.rpc.Status, empty unless FAILED or CANCELLED with a reason
  std::string result;         // v1::JobResult, empty until SUCCEEDED
  std::string best;           // v1::BestCandidate, likewise; empty where none ran
  std::string traceparent;    // W3C, of the request that makes the job; read back by Store::JobTrace alone
  Timestamp created{};
  Timestamp updated{};
};

struct CreatedJob {
  JobRecord job;
  bool created = false;  // false: the request_id was known, and this is the job it made
};

// Fields that are set replace those of the job.
struct JobUpdate {
  std::optional<JobState> state;
  std::optional<std::string> graph_name;
  std::optional<std::string> graph_hash;
  std::optional<std::string> graph_summary;
  std::optional<std::string> error;
  std::optional<std::string> result;
  std::optional<std::string> best;
  // The event is added to those of the job in the same transaction (the last event of a job goes with its
  // last state).
  std::optional<std::string> event;  // v1::JobEvent
};

struct JobPage {
  std::vector<JobRecord> jobs;  // newest first; request, error and result are left empty
  std::string next_page_token;  // empty: no more
};

// A secret by which callers show who they are.
struct TokenRecord {
  std::string id;           // "tokens/<hex>"
  std::string principal;    // who shows it
  std::string role;         // name of a v1::Role
  std::string secret_hash;  // SHA-256 of the secret, hex
  Timestamp created{};
  Timestamp expires{};  // 0: never
  Timestamp revoked{};  // 0: it is good
  std::string scopes;   // names of scopes that limit it, with spaces between; empty: none do
};

// Somebody made this change, or was refused it.
struct AuditRecord {
  int64_t number = 0;  // given by the store
  Timestamp time{};
  std::string principal;
  std::string role;  // name of a v1::Role; empty: nobody known
  std::string peer;
  std::string method;   // "/fusion.v1.OptimizerService/CancelJob"
  std::string subject;  // "jobs/..."
  std::string outcome;  // "OK", "PERMISSION_DENIED"
};

struct AuditPage {
  std::vector<AuditRecord> entries;  // newest first
  std::string next_page_token;       // empty: no more
};

struct EventRecord {
  int64_t sequence = 0;  // 1, 2, 3 ... in each job
  Timestamp time{};
  std::string event;  // v1::JobEvent; its own sequence and time fields are the reader's to fill
};

enum class TaskKind { kBuild = 1, kTime = 2 };
enum class TaskState { kQueued = 1, kRunning = 2, kDone = 3, kFailed = 4, kCancelled = 5 };
// The reason why a task is FAILED. A program that does not compile or crashes is no failure of its task but
// its result.
enum class TaskFailure { kNone = 0, kWorkerLost = 1, kWorkerFailed = 2, kQueueTimeout = 3 };
bool IsTerminal(TaskState state);
const char* TaskStateName(TaskState state);

// A device must be like this to run a task. An empty arch or device_uuid means any.
struct TaskRequirements {
  std::string target;  // name of a v1::Target
  std::string arch;
  std::string device_uuid;
};

// A worker offers this capability. An empty arch means every arch of the target.
struct Capability {
  std::string target;
  std::string arch;
  std::string device_uuid;
};

struct TaskSpec {
  std::string key;  // equal keys: equal work
  TaskKind kind = TaskKind::kBuild;
  TaskRequirements requirements;
  std::string payload;                // v1::BuildTask or v1::TimeTask
  int priority = 0;                   // added to that of the job; larger first, then oldest first
  std::string avoid_worker;           // is not given the task
  std::chrono::microseconds hold{0};  // longest time that one worker may hold it; 0: any
};

struct TaskRecord {
  int64_t number = 0;  // order of queueing
  std::string id;      // "tasks/<hex>"
  std::string key;
  TaskKind kind = TaskKind::kBuild;
  TaskState state = TaskState::kQueued;
  TaskRequirements requirements;
  std::string user;  // user of the job that it was queued for
  int priority = 0;
  int64_t fence = 0;     // raised by every claim; a result counts only with the newest
  int attempts = 0;      // claims
  int failures = 0;      // claims that ended with the worker saying that it failed
  int lost_workers = 0;  // claims that ended with the worker gone
  std::string worker;    // last holder
  std::string instance;
  std::string avoid_worker;  // is not given the task
  Timestamp lease_until{};
  Timestamp hold_until{};   // end of the last claim, however often it is renewed; 0: no end
  Timestamp not_before{};   // the worker that failed it last must wait until then
  Timestamp queue_until{};  // FAILED when nobody has taken it by then; 0: never
  TaskFailure failure = TaskFailure::kNone;
  std::string failure_message;
  Timestamp created{};
  Timestamp updated{};
  std::string traceparent;  // W3C, from the job that it was queued for; read with the payload
  std::string payload;
  std::string result;  // v1::BuildResult or v1::TimeResult, empty until DONE
};

struct EnsuredTask {
  TaskRecord task;
  bool created = false;  // false: the work was known already
};

// A task as its holder knows it.
struct TaskHold {
  std::string task;
  int64_t fence = 0;
};

// A line of the build cache.
struct BuildRecord {
  std::string key;
  std::string outcome;        // name of a v1::Outcome: OK or COMPILE_ERROR
  std::string binary_digest;  // "sha256:<hex>"; empty unless OK
  std::string log;
  double seconds = 0;
  Timestamp created{};
};

// The holder of a task hands this in when the task is done.
struct TaskCompletion {
  TaskHold hold;
  std::string result;                // v1::BuildResult or v1::TimeResult
  std::optional<BuildRecord> build;  // goes into the build cache in the same transaction
};

// A trim of the build cache left or evicted so much.
struct BuildCacheTrim {
  int64_t bytes = 0;  // bytes that are left
  int64_t blobs = 0;
  int64_t evicted_bytes = 0;
  int64_t evicted = 0;
};

// The store tries a task so often.
struct RetryPolicy {
  int lost_workers = 2;  // FAILED with kWorkerLost when so many workers were lost to it
  int failures = 3;      // FAILED with kWorkerFailed when so many claims ended with a worker's own failure
  // The worker that failed a task gets it again only after this long, twice as long after each further
  // failure; others may have it at once.
  std::chrono::microseconds backoff = std::chrono::seconds(2);
};

struct MeasurementRecord {
  int64_t number = 0;  // assigned by the store, ascending
  std::string job;
  std::string candidate_key;
  std::string graph_hash;
  std::string sizes;         // "m=4093,n=5001", names in order
  std::string device_class;  // v1::DeviceDescription.name
  std::string device_uuid;
  std::string arch;
  std::string driver;
  std::string toolkit;
  std::string library_hash;
  int method_version = 0;
  std::string outcome;  // name of a v1::Outcome
  std::string cache;    // state of the caches in the three times: "COLD" or "WARM"
  double median_seconds = 0;
  double low_seconds = 0;
  double high_seconds = 0;
  std::string raw;         // v1::ProgramMeasurement with its samples
  std::string conditions;  // v1::MeasurementConditions
  Timestamp created{};
};

struct DeviceRecord {
  std::string uuid;
  std::string device_class;
  std::string description;  // v1::DeviceDescription
  Timestamp last_seen{};
};

struct DeviceBenchmarkRecord {
  std::string device_class;
  std::string driver;
  std::string library_hash;  // empty: does not depend on the library
  std::string quantity;      // "copy_bandwidth"
  std::string parameter;     // "bytes=268435456"
  double value = 0;
  std::string unit;  // "bytes/second"
  Timestamp created{};
};

// Tables of routine times belong to this key.
struct RoutineTablesKey {
  std::string device_class;
  std::string toolkit;
};
struct RoutineTableRecord {
  std::string routine;
  std::string source_hash;  // of the routine's function; empty for loads and stores
  std::string content;      // RoutineTable
};

// v1::ResidualStatistics are kept for each such key.
struct ModelStatisticsKey {
  std::string device_class;
  std::string cache;  // name of a v1::CacheState
  int model_version = 0;
};

// Measured times of kernels belong to this key.
struct KernelTimesKey {
  std::string device_class;
  std::string cache;  // name of a v1::CacheState
  std::string toolkit;
};
struct KernelTimeRecord {
  std::string family;  // names its functions by their source
  std::string sizes;
  std::string variant;
  std::string content;  // v1::KernelTime; empty: not known
};

// MeasurementStore::ForgetModel removed so many rows.
struct ForgottenModel {
  int64_t kernel_times = 0;
  int64_t statistics = 0;
  int64_t routine_tables = 0;
};

// A claim of a task by a worker.
struct AttemptRecord {
  int64_t number = 0;  // ascending with every claim
  std::string task;    // "tasks/<hex>"
  TaskKind kind = TaskKind::kBuild;
  int64_t fence = 0;
  std::string worker;
  std::string instance;
  Timestamp queued{};  // the task had waited since then
  Timestamp claimed{};
  Timestamp ended{};  // 1970: it runs
  // DONE, WORKER_FAILED, LEASE_EXPIRED, WORKER_GONE, CANCELLED, REQUEUED; empty: it runs.
  std::string ended_how;
  int64_t ended_order = 0;  // ascending with every end; 0: it runs
};

// A task of a job with all its attempts, in order.
struct TracedTask {
  std::string id;
  TaskKind kind = TaskKind::kBuild;
  TaskState state = TaskState::kQueued;
  TaskRequirements requirements;
  std::string failure_message;
  Timestamp created{};
  Timestamp updated{};
  std::vector<AttemptRecord> attempts;
};

// A stage of a job's pipeline.
struct StageRecord {
  int64_t number = 0;
  std::string name;
  Timestamp started{};
  Timestamp ended{};  // 1970: it runs, or the server was ended in it
};

struct JobTraceRecord {
  std::string traceparent;          // empty: none was given
  std::vector<StageRecord> stages;  // in order of beginning
  std::vector<TracedTask> tasks;    // in order of queueing
};

// ---- Online tuning. A configuration is 8 bytes for each value: a double, the lowest byte first.

// A tuning is known by this key.
struct TuningKey {
  std::string program;
  std::string section;
  std::string device_class;
  std::string context;  // "m=4096,n=100", names in order
  friend auto operator<=>(const TuningKey&, const TuningKey&) = default;
};

// The search of a tuning has come so far.
struct TuningProgress {
  int64_t generation = 1;  // raised when earlier measurements count no more
  std::string best;        // a configuration; empty: none
  double best_value = 0;   // the expected value; 0: not known
  double best_relative_error = 0;
  std::string phase;              // name of a v1::TuningPhase
  std::string provenance;         // name of a v1::Provenance
  std::string provenance_tuning;  // "tunings/<hex>"; empty: none
  int64_t drifts = 0;
  int64_t evaluations = 0;  // runs of proposals in this generation
};

struct TuningRecord {
  int64_t number = 0;  // given by the store; constant
  std::string id;      // "tunings/<hex>"; empty when it is opened: the store makes one
  TuningKey key;
  std::string declaration;  // v1::SectionDeclaration
  std::string strategy;
  std::string defaults;  // a configuration
  int64_t loads = 0;     // how often it was opened
  TuningProgress progress;
  int64_t reports = 0;         // all that ever came
  int64_t configurations = 0;  // configurations that were run in this generation
  // These fields count since the last reset.
  int64_t runs = 0;
  int64_t failures = 0;
  double exploration_excess = 0;
  double total_value = 0;
  double default_value = 0;  // mean of the defaults in this generation; 0: not measured
  Timestamp created{};
  Timestamp reported{};  // time of the newest report; that of creation before the first
};

struct TuningPage {
  std::vector<TuningRecord> tunings;  // the newest report first
  std::string next_page_token;        // empty: no more
};

// The reports of one configuration add up to this.
struct TuningConfigurationRecord {
  std::string configuration;
  int64_t count = 0;  // runs that succeeded
  double mean = 0;
  double squared_deviations = 0;  // sum over the runs, from the mean
  double minimum = 0;
  int64_t failures = 0;
};

// The best configuration after so many evaluations.
struct TuningConvergenceRecord {
  int64_t evaluations = 0;
  std::string configuration;
  double value = 0;
};

struct TuningReportRecord {
  int64_t tuning = 0;  // TuningRecord.number
  int64_t number = 0;  // 1, 2, 3 ... in each tuning; given by the store
  int64_t generation = 0;
  std::string process;  // filled by ListTuningReports; empty: forgotten
  Timestamp time{};
  int64_t proposal = 0;  // 0: the choice in force
  TuningConfigurationRecord runs;
  double exploration_excess = 0;  // added to that of the tuning; not kept with the report
};

struct TuningReportPage {
  std::vector<TuningReportRecord> reports;  // oldest first
  std::string next_page_token;              // empty: no more
};

// Reports that a process sent together.
struct TuningBatch {
  std::string process;
  int64_t sequence = 0;  // > 0
  std::vector<TuningReportRecord> reports;
};

// Replaces the progress of a tuning, unless its generation is higher already.
struct TuningProgressUpdate {
  int64_t tuning = 0;
  TuningProgress progress;
  std::vector<TuningConvergenceRecord> convergence;  // are added to this generation
  bool reset = false;                                // the sums over the reports begin anew
};

// The store keeps so much of the past.
struct TuningRetention {
  int64_t reports = 1'000'000;  // the newest of each tuning
  // A process that has sent nothing for so long is forgotten: a batch that it sent again would count again.
  std::chrono::microseconds processes = std::chrono::hours(24 * 30);
  int64_t generations = 4;  // earlier ones whose statistics are kept beside the present one's
};

// The store holds so much now.
struct StoreStatistics {
  int64_t queued_builds = 0, queued_timings = 0;
  int64_t running_builds = 0, running_timings = 0;
  int64_t queued_jobs = 0, running_jobs = 0;
  int64_t bytes = 0;  // of the database and its write-ahead log
  // Blobs that were found damaged since the store was opened, and those of them that were stored anew.
  int64_t damaged_blobs = 0, rebuilt_blobs = 0;
};

}  // namespace fusion
