// Tells how well the predictions of finished jobs agree with measured times: the answer to `model report`.
#pragma once

#include "absl/status/statusor.h"
#include "db/store/job_store.h"
#include "fusion/v1/optimizer.pb.h"
#include "server/dispatch/cancellation.h"
#include "server/identity/principal.h"

namespace fusion {

inline constexpr int kDefaultReportedJobs = 1000;
inline constexpr int kMaximumReportedJobs = 10000;
// At most so many jobs, the newest, are plotted: a plot names no more.
inline constexpr int kPlottedJobs = 28;

// Reads jobs of the caller (an admin: of all) that SUCCEEDED, newest first, until request.jobs of them match.
// Only candidates count that are OK and whose predicted and measured times are finite and above 0; a job
// without any is left out, and so is a job whose stored result cannot be read (a warning in the log names
// it). Jobs from before there was a choice of times are COLD. InvalidArgument: jobs or cache out of range.
// NotFound: no job matches; the message says what there is. Cancelled. Errors of the store. Thread safe.
absl::StatusOr<v1::ReportModelResponse> ReportModel(const v1::ReportModelRequest& request, JobStore& store,
                                                    const Principal& caller,
                                                    const CancellationToken& cancellation);

}  // namespace fusion
