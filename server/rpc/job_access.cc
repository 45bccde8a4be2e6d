#include "server/rpc/job_access.h"

#include "absl/strings/str_cat.h"

namespace fusion {

absl::Status NoSuchJob(const std::string& job) {
  return absl::NotFoundError(absl::StrCat("there is no job ", job));
}

absl::StatusOr<JobRecord> GetJobFor(AdmittedCall& call, JobStore& store, const std::string& job) {
  call.subject = job;
  absl::StatusOr<JobRecord> record = store.GetJob(job);
  if (!record.ok() || MaySeeJobsOf(call.caller, record->user)) return record;
  call.refused = true;
  return NoSuchJob(job);
}

}  // namespace fusion
