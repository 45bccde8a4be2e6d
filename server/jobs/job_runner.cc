#include "server/jobs/job_runner.h"

#include <google/protobuf/util/message_differencer.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/monitor/log.h"
#include "base/monitor/trace_context.h"
#include "base/rpc/status_conversion.h"
#include "base/status_macros.h"
#include "server/jobs/job_messages.h"
#include "server/metrics/server_metrics.h"

namespace fusion {
namespace {

constexpr std::chrono::seconds kRetryDelay{5};
// A job fails when it loses so many devices.
constexpr int kMostDevices = 8;
// Returns the places beyond `places`, for users who have fewer jobs running than their share.
int KeptPlaces(int places) { return std::max(1, places / 4); }

std::map<std::string, int64_t> SizesOf(const v1::GraphSummary& graph) {
  return {graph.size_values().begin(), graph.size_values().end()};
}
// Returns an empty message where no candidate ran.
v1::BestCandidate BestOf(const v1::JobResult& result) {
  v1::BestCandidate best;
  if (result.candidates().empty() || result.candidates(0).outcome() != v1::OK) return best;
  const v1::Candidate& first = result.candidates(0);
  best.set_predicted(result.predicted());
  best.set_seconds(result.predicted() ? first.predicted_seconds() : first.measured().median());
  best.set_speedup(first.speedup());
  return best;
}

// Returns the fields that decide the result of a request, beside its graph and sizes.
v1::SubmitRequest OptionsOf(v1::SubmitRequest request) {
  const int64_t fusions = request.limits().fusions();  // a limit of the search, not of time
  for (const char* field : {"request_id", "source", "target", "time_limit_seconds", "priority", "limits"})
    request.GetReflection()->ClearField(&request, request.GetDescriptor()->FindFieldByName(field));
  if (fusions != 0) request.mutable_limits()->set_fusions(fusions);
  return request;
}

// A request id is that of one submission; whoever gives it to another one would take the first one's results
// for its own.
absl::Status CheckSameRequest(const JobRecord& known, const v1::SubmitRequest& request,
                              const v1::GraphSummary& graph) {
  v1::SubmitRequest known_request;
  v1::GraphSummary known_graph;
  if (!known_request.ParseFromString(known.request) || !known_graph.ParseFromString(known.graph_summary))
    return absl::DataLossError(absl::StrCat(known.id, " is not readable"));
  std::string other, options;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&options);
  if (known.graph_hash != graph.hash()) {
    other = "of another graph";
  } else if (known.target != v1::Target_Name(request.target())) {
    other = "for another target";
  } else if (SizesOf(known_graph) != SizesOf(graph)) {
    other = "for other sizes";
  } else if (known_graph.input_values() != graph.input_values()) {
    other = "for other values of inputs";
  } else if (!differencer.Compare(OptionsOf(known_request), OptionsOf(request))) {
    other = absl::StrCat("with other options: ", absl::StripTrailingAsciiWhitespace(options));
  }
  if (other.empty()) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("request id \"", request.request_id(), "\" is that of ", known.id, ", which is ", other));
}

}  // namespace

int DefaultJobPlaces() {
  constexpr int kLeast = 8, kMost = 256;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), kLeast, kMost);
}

JobRunner::JobRunner(Store& store, Dispatcher& dispatcher, SearchPool& searches,
                     std::shared_ptr<const Catalog> catalog, JobWatchers& watchers, JobRunnerOptions options,
                     ServerMetrics* metrics)
    : store_(store),
      dispatcher_(dispatcher),
      searches_(searches),
      catalog_(std::move(catalog)),
      watchers_(watchers),
      options_(std::move(options)),
      metrics_(metrics),
      line_(options_.threads, KeptPlaces(options_.threads)),
      pool_(options_.threads + KeptPlaces(options_.threads) + kMostWaiting) {
  dispatcher_.OnWaiting(
      [this](const std::string& job, const std::string& what, std::chrono::milliseconds left) {
        if (!SetWaitsFor(job, what, left)) return;
        v1::JobEvent event;
        event.set_note(dispatcher_.only_worker_is_here() ? "the worker of this process is starting" : what);
        Emit(job, std::move(event));
      });
  KeepTimesUsed();
}

JobRunner::~JobRunner() { Stop(); }

absl::Status JobRunner::CheckRoom(const std::string& user) {
  std::lock_guard lock(mutex_);
  const bool too_many_of_user = line_.size(user) >= options_.most_jobs_of_user;
  if (!too_many_of_user && line_.size() < options_.most_jobs) return absl::OkStatus();
  const std::string full =
      too_many_of_user ? absl::StrCat("you have ", options_.most_jobs_of_user,
                                      " unfinished jobs, which is the most that the server takes of one user")
                       : absl::StrCat("the server has ", options_.most_jobs,
                                      " unfinished jobs, which is the most it takes");
  return RetryLater(absl::StrCat(full, "; try again in ", kRetryDelay.count(), " s"), kRetryDelay);
}

absl::StatusOr<JobRecord> JobRunner::Submit(const v1::SubmitRequest& request, const v1::GraphSummary& graph,
                                            const std::string& user, const std::string& traceparent) {
  if (absl::Status room = CheckRoom(user); !room.ok()) {
    // Whoever asks again for what was accepted is told so.
    if (request.request_id().empty()) return room;
    absl::StatusOr<JobRecord> known = store_.FindRequest(user, request.request_id());
    if (!known.ok()) return room;
    FUSION_RETURN_IF_ERROR(CheckSameRequest(*known, request, graph));
    return known;
  }
  JobRecord record;
  record.user = user;
  record.priority = request.priority();
  record.queue_limit =
      std::chrono::microseconds(static_cast<int64_t>(request.limits().queue_seconds() * 1e6));
  record.request_id = request.request_id();
  record.target = v1::Target_Name(request.target());
  record.graph_name = graph.name();
  record.graph_hash = graph.hash();
  record.graph_summary = graph.SerializeAsString();
  record.request = request.SerializeAsString();
  record.traceparent = traceparent;
  FUSION_ASSIGN_OR_RETURN(CreatedJob created, store_.CreateJob(record, TimeOfDay()));
  FUSION_RETURN_IF_ERROR(CheckSameRequest(created.job, request, graph));
  if (created.created) {
    spdlog::info("{} submitted: {}, {}", created.job.id, graph.name(), record.target);
    if (metrics_ != nullptr) metrics_->jobs_submitted->Add();
  }
  if (!IsTerminal(created.job.state)) Start(created.job);
  return std::move(created.job);
}

absl::Status JobRunner::EnsureRunning(const std::string& job) {
  FUSION_ASSIGN_OR_RETURN(JobRecord record, store_.GetJob(job));
  if (!IsTerminal(record.state)) Start(record);
  return absl::OkStatus();
}

absl::Status JobRunner::ResumeAll() {
  FUSION_ASSIGN_OR_RETURN(std::vector<JobRecord> jobs, store_.UnfinishedJobs());
  for (const JobRecord& job : jobs) {
    spdlog::info("{} goes on", job.id);
    Start(job);
  }
  return absl::OkStatus();
}

void JobRunner::Start(const JobRecord& record) {
  v1::SubmitRequest request;
  request.ParseFromString(record.request);
  auto active = std::make_shared<Active>(timers_);
  active->limited = request.time_limit_seconds() > 0;
  if (active->limited) {
    if (absl::StatusOr<std::chrono::microseconds> used = store_.TimeUsed(record.id); used.ok())
      active->used_before = *used;
    else
      spdlog::warn("{}: its time limit begins anew: {}", record.id, used.status().ToString());
  }
  std::lock_guard lock(mutex_);
  if (stopping_ || active_.count(record.id) > 0) return;
  active_[record.id] = active;

  if (const double seconds = request.time_limit_seconds(); seconds > 0) {
    // The time that the job has waited and run in processes of the server counts, not the clock's: the clock
    // may have been set, and while no server was there the job could do nothing.
    const std::chrono::duration<double> used = active->used_before;
    active->time_limit.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::max(std::chrono::duration<double>(seconds) - used, std::chrono::duration<double>(0))));
    active->time_limit.async_wait(
        [this, job = record.id, active, seconds](const boost::system::error_code& error) {
          if (!error) OnTimeLimit(job, active, seconds);
        });
  }
  line_.Add(record.id, record.user, record.priority);
  boost::asio::post(pool_, [this] { RunNext(); });
}

void JobRunner::PutTimesUsed() {
  const auto now = std::chrono::steady_clock::now();
  std::map<std::string, std::chrono::microseconds> used;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [job, active] : active_)
      if (active->limited)
        used[job] = active->used_before +
                    std::chrono::duration_cast<std::chrono::microseconds>(now - active->started);
  }
  if (used.empty()) return;
  if (absl::Status put = store_.PutTimesUsed(used); !put.ok())
    spdlog::warn("what jobs have used of their time limits was not stored: {}", put.ToString());
}

void JobRunner::KeepTimesUsed() {
  times_used_.expires_after(options_.time_used_period);
  times_used_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    PutTimesUsed();
    KeepTimesUsed();
  });
}

bool JobRunner::SetWaitsFor(const std::string& job, const std::string& what, std::chrono::milliseconds left) {
  std::lock_guard lock(mutex_);
  const auto active = active_.find(job);
  if (active == active_.end()) return false;
  active->second->waits_for = what;
  active->second->waits_until = std::chrono::steady_clock::now() + left;
  return !what.empty() && !std::exchange(active->second->told_waiting, true);
}

std::string JobRunner::WaitsFor(const std::string& job) {
  std::lock_guard lock(mutex_);
  if (const auto left = left_to_store_.find(job); left != left_to_store_.end() && left->second.has_value())
    return absl::StrCat("the job has ended, and waits until that can be stored: ", why_not_stored_);
  const auto active = active_.find(job);
  if (active == active_.end() || active->second->waits_for.empty()) return "";
  return WaitsForText(active->second->waits_for,
                      std::chrono::duration_cast<std::chrono::milliseconds>(
                          active->second->waits_until - std::chrono::steady_clock::now()));
}

std::string JobRunner::StageOf(const std::string& job) {
  std::lock_guard lock(mutex_);
  const auto active = active_.find(job);
  return active == active_.end() ? "" : active->second->stage;
}

void JobRunner::OnTimeLimit(const std::string& job, const std::shared_ptr<Active>& active, double seconds) {
  bool waited;
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    active->timed_out = true;
    waited = line_.Remove(job);
  }
  active->cancellation.Cancel();
  // A job that waits for a thread ends now; a running one ends when its pipeline has put its work down.
  if (!waited) return;
  OfferPlaces();  // without a user who has none any more the others' shares are larger
  const bool finished =
      Finish(job, absl::DeadlineExceededError(absl::StrCat(
                      "the time limit of ", seconds, " s ended before a thread of the server was free")));
  // Not before its end is stored: nobody starts it again meanwhile.
  std::lock_guard lock(mutex_);
  if (finished) active_.erase(job);
}

void JobRunner::StopTimer(std::shared_ptr<Active> active) {
  boost::asio::post(timers_, [active = std::move(active)] { active->time_limit.cancel(); });
}

void JobRunner::Run(const std::string& job, const std::shared_ptr<Active>& active) {
  bool stopped, finished = true;
  {
    std::lock_guard lock(mutex_);
    stopped = stopping_;
  }
  if (!stopped) {
    const absl::StatusOr<JobTraceRecord> trace = store_.JobTrace(job);
    const auto context = ParseTraceParent(trace.ok() ? trace->traceparent : "");
    const LogScope job_scope("job", job), trace_scope("trace_id", context ? context->trace_id : "");
    absl::StatusOr<v1::JobResult> result = RunPipeline(job, *active);
    std::unique_lock lock(mutex_);
    stopped = stopping_ && !result.ok();
    const bool timed_out = active->timed_out;
    lock.unlock();
    if (!result.ok() && timed_out && absl::IsCancelled(result.status()))
      result = absl::DeadlineExceededError("the time limit ended before the job did");
    // An interrupted job is not a failed one: it goes on after the restart.
    if (!stopped) finished = Finish(job, std::move(result));
  }
  StopTimer(active);
  dispatcher_.JobEnded(job);  // before it can be started again
  std::lock_guard lock(mutex_);
  if (finished) active_.erase(job);
  line_.Ended(job);
  place_.notify_all();
}

absl::StatusOr<v1::JobResult> JobRunner::RunPipeline(const std::string& job, Active& active) {
  FUSION_ASSIGN_OR_RETURN(JobRecord record, store_.GetJob(job));
  if (IsTerminal(record.state)) return absl::CancelledError("the job has ended");
  if (record.state == JobState::kQueued) {
    JobUpdate update;
    update.state = JobState::kRunning;
    if (auto updated = store_.UpdateJob(job, update, TimeOfDay()); !updated.ok()) return updated.status();
  }
  v1::SubmitRequest request;
  if (!request.ParseFromString(record.request))
    return absl::DataLossError("the stored request cannot be read");
  PipelineContext context{
      store_,
      dispatcher_,
      searches_,
      catalog_,
      job,
      active.cancellation,
      [this, job](v1::JobEvent event) { Emit(job, std::move(event)); },
      options_.dump_directory,
      metrics_,
      request.limits(),
      [this, job, &active](bool waits) { waits ? LeavePlace(job) : ReturnToPlace(job, active); },
      [this, job](const std::string& what, std::chrono::milliseconds left) { SetWaitsFor(job, what, left); }};
  try {
    for (int devices = 1;; ++devices) {
      absl::StatusOr<v1::JobResult> result = options_.pipeline(request, context);
      // Times of two devices are not compared: all is measured again on the next one. What was built is
      // built.
      if (!absl::IsAborted(result.status()) || devices == kMostDevices) return result;
      v1::JobEvent event;
      event.set_note(absl::StrCat(result.status().message(), "; the job begins anew on another"));
      Emit(job, event);
    }
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("the server ran out of memory on this job");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("the pipeline failed: ", error.what()));
  }
}

void JobRunner::Emit(const std::string& job, v1::JobEvent event) {
  std::shared_ptr<Active> active;
  {
    std::lock_guard lock(mutex_);
    if (const auto found = active_.find(job); found != active_.end()) active = found->second;
    if (active != nullptr && event.has_stage()) active->stage = event.stage();
  }
  if (active == nullptr || active->cancellation.cancelled()) return;
  // Progress is for people: a disk that is full is reported by the results, not by it.
  absl::StatusOr<int64_t> sequence = store_.AppendEvent(job, event.SerializeAsString(), TimeOfDay());
  if (!sequence.ok()) {
    spdlog::warn("{}: an event was not stored: {}", job, sequence.status().ToString());
    return;
  }
  watchers_.Notify(job);
}

bool JobRunner::Finish(const std::string& job, absl::StatusOr<v1::JobResult> result) {
  const absl::Status stored = StoreResult(job, result);
  if (stored.ok()) {
    watchers_.Notify(job);
    if (CancelTasks(job)) return true;
  } else {
    spdlog::error("{}: its end is not stored yet: {}", job, stored.ToString());
  }
  {
    std::lock_guard lock(mutex_);
    std::optional<absl::StatusOr<v1::JobResult>>& left = left_to_store_[job];
    if (!stored.ok()) {
      left = std::move(result);
      why_not_stored_ = std::string(stored.message());
    }
  }
  boost::asio::post(timers_, [this] { KeepStoring(); });
  return false;
}

absl::Status JobRunner::StoreResult(const std::string& job, const absl::StatusOr<v1::JobResult>& result) {
  JobUpdate update;
  if (result.ok()) {
    update.state = JobState::kSucceeded;
    update.result = result->SerializeAsString();
    update.best = BestOf(*result).SerializeAsString();
    if (result->has_graph()) update.graph_summary = result->graph().SerializeAsString();
  } else {
    update.state = JobState::kFailed;
    update.error = ToRpcStatus(result.status()).SerializeAsString();
  }
  absl::Status stored = StoreEnd(job, update);
  if (!stored.ok() && result.ok()) {
    JobUpdate failure;
    failure.state = JobState::kFailed;
    failure.error = ToRpcStatus(absl::Status(stored.code(), absl::StrCat("the result could not be stored: ",
                                                                         stored.message())))
                        .SerializeAsString();
    stored = StoreEnd(job, failure);
  }
  return absl::IsNotFound(stored) ? absl::OkStatus() : stored;
}

// A job may leave tasks that it asked for: after a restart it plans with what was learned meanwhile.
bool JobRunner::CancelTasks(const std::string& job) {
  const absl::Status cancelled = dispatcher_.CancelJob(job);
  if (!cancelled.ok())
    spdlog::warn("{}: tasks that it left are not cancelled yet: {}", job, cancelled.ToString());
  return cancelled.ok();
}

void JobRunner::KeepStoring() {
  if (std::exchange(stores_again_, true)) return;
  store_again_.expires_after(options_.store_again_period);
  store_again_.async_wait([this](const boost::system::error_code& error) {
    stores_again_ = false;
    if (!error) StoreAgain();
  });
}

void JobRunner::StoreAgain() {
  std::map<std::string, std::optional<absl::StatusOr<v1::JobResult>>> left;
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;  // they go on at the next start
    left = left_to_store_;
  }
  for (const auto& [job, result] : left) {
    if (result.has_value()) {
      if (!StoreResult(job, *result).ok()) continue;
      spdlog::info("{}: its end is stored now", job);
      watchers_.Notify(job);
      std::lock_guard lock(mutex_);
      left_to_store_[job].reset();
    }
    if (!CancelTasks(job)) continue;
    std::lock_guard lock(mutex_);
    left_to_store_.erase(job);
    active_.erase(job);
  }
  std::lock_guard lock(mutex_);
  if (!left_to_store_.empty()) KeepStoring();
}

// The last event carries the job as it ends, and is stored in the same transaction.
absl::Status JobRunner::StoreEnd(const std::string& job, JobUpdate update) {
  FUSION_ASSIGN_OR_RETURN(JobRecord record, store_.GetJob(job));
  if (IsTerminal(record.state)) return absl::OkStatus();
  const Timestamp now = TimeOfDay();
  record.state = *update.state;
  record.updated = now;
  if (update.result) record.result = *update.result;
  if (update.best) record.best = *update.best;
  if (update.error) record.error = *update.error;
  if (update.graph_summary) record.graph_summary = *update.graph_summary;
  v1::JobEvent event;
  *event.mutable_finished() = ToMessage(record);
  update.event = event.SerializeAsString();
  absl::Status status = store_.UpdateJob(job, update, now).status();
  if (status.ok()) {
    spdlog::info("{} {} after {:.3f} s", job, JobStateName(record.state),
                 std::chrono::duration<double>(now - record.created).count());
    if (metrics_ != nullptr) metrics_->jobs_ended.With({JobStateName(record.state)}).Add();
  }
  // Cancelled in the meantime: that end stands.
  return absl::IsFailedPrecondition(status) ? absl::OkStatus() : status;
}

absl::StatusOr<JobRecord> JobRunner::Cancel(const std::string& job) {
  JobUpdate update;
  update.state = JobState::kCancelled;
  update.error = ToRpcStatus(absl::CancelledError("cancelled on request")).SerializeAsString();
  FUSION_RETURN_IF_ERROR(StoreEnd(job, update));
  std::shared_ptr<Active> active;
  bool waited;
  {
    std::lock_guard lock(mutex_);
    auto found = active_.find(job);
    if (found != active_.end()) active = found->second;
    waited = line_.Remove(job);
    if (waited) active_.erase(job);
  }
  if (waited) OfferPlaces();
  if (active) {
    active->cancellation.Cancel();
    StopTimer(active);
  }
  watchers_.Notify(job);
  FUSION_RETURN_IF_ERROR(dispatcher_.CancelJob(job));
  return store_.GetJob(job);
}

void JobRunner::Stop() {
  std::vector<std::shared_ptr<Active>> active;
  {
    std::lock_guard lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
    for (auto& [job, entry] : active_) active.push_back(entry);
  }
  place_.notify_all();
  PutTimesUsed();
  // Before the tokens: a cancelled wait cancels its tasks, a stopped one leaves them for the next process.
  dispatcher_.Stop();
  for (auto& entry : active) {
    entry->cancellation.Cancel();
    StopTimer(entry);
  }
  pool_.join();
  timers_.stop();
  timers_.join();
}

}  // namespace fusion
