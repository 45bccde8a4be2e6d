// Jobs, their events and the stages that they went through. Rules for all calls: db/store/store.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/store/records.h"

namespace fusion {

class JobStore {
 public:
  virtual ~JobStore() = default;

  // Adds a QUEUED job. With a request_id that is known already, changes nothing and returns that job.
  // ALREADY_EXISTS: job.id is taken by another request.
  virtual absl::StatusOr<CreatedJob> CreateJob(const JobRecord& job, Timestamp now) = 0;
  // NOT_FOUND: no such job.
  virtual absl::StatusOr<JobRecord> GetJob(const std::string& id) = 0;
  // Returns the job that the user's request of this id made. NOT_FOUND: none.
  virtual absl::StatusOr<JobRecord> FindRequest(const std::string& user, const std::string& request_id) = 0;
  // Returns the newest jobs first, at most page_size (1 to 1000; 0: 50) of them. INVALID_ARGUMENT:
  // `page_token` is not from an earlier page.
  virtual absl::StatusOr<JobPage> ListJobs(int page_size, const std::string& page_token) = 0;
  // Does what ListJobs does, for the jobs of one user.
  virtual absl::StatusOr<JobPage> ListJobsOf(const std::string& user, int page_size,
                                             const std::string& page_token) = 0;
  // Changes the job and returns it as it now is. NOT_FOUND; FAILED_PRECONDITION: the job has ended, or the
  // state may not follow the present one (QUEUED -> RUNNING, FAILED, CANCELLED; RUNNING -> SUCCEEDED, FAILED,
  // CANCELLED).
  virtual absl::StatusOr<JobRecord> UpdateJob(const std::string& id, const JobUpdate& update,
                                              Timestamp now) = 0;
  // Returns the QUEUED and RUNNING jobs, oldest first: a server takes them up again when it starts.
  virtual absl::StatusOr<std::vector<JobRecord>> UnfinishedJobs() = 0;
  // Stores how much of its time limit each job has used; jobs that have ended or are not known are left out.
  virtual absl::Status PutTimesUsed(const std::map<std::string, std::chrono::microseconds>& used) = 0;
  // Returns the time that was put last; 0: none was.
  virtual absl::StatusOr<std::chrono::microseconds> TimeUsed(const std::string& job) = 0;

  // Returns the event's sequence: 1 for the first of the job, then one more each time. NOT_FOUND: no such
  // job.
  virtual absl::StatusOr<int64_t> AppendEvent(const std::string& job, const std::string& event,
                                              Timestamp now) = 0;
  // Returns the events with a larger sequence, in order, at most limit. NOT_FOUND: no such job.
  virtual absl::StatusOr<std::vector<EventRecord>> EventsAfter(const std::string& job, int64_t sequence,
                                                               int limit) = 0;

  // Returns everything that is known of when the parts of the job ran. NOT_FOUND: no such job.
  virtual absl::StatusOr<JobTraceRecord> JobTrace(const std::string& job) = 0;
  // Notes that a stage of the job's pipeline begins; returns the stage's number. NOT_FOUND: no such job.
  virtual absl::StatusOr<int64_t> BeginStage(const std::string& job, const std::string& name,
                                             Timestamp now) = 0;
  // A number that is not known changes nothing.
  virtual absl::Status EndStage(int64_t number, Timestamp now) = 0;
};

}  // namespace fusion
