// Shows jobs only to callers that may see them.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "db/store/job_store.h"
#include "server/identity/principal.h"
#include "server/rpc/pooled_call.h"

namespace fusion {

// Returns NotFound, in the words of the store: another user's job cannot be told from none.
absl::Status NoSuchJob(const std::string& job);

// Returns the job if the caller may see it; it is the subject of the call from here on. NotFound: there is
// none, or it is another user's.
absl::StatusOr<JobRecord> GetJobFor(AdmittedCall& call, JobStore& store, const std::string& job);

}  // namespace fusion
