// Values of inputs that come from a file: uploaded before a job is submitted, read by the workers that time
// its candidates. In the store they are entries of the build cache whose keys name the user, the size and the
// digest, so they stay as long as an unfinished job has them and go, the least recently used first, when the
// cache is full.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "db/store/store.h"
#include "server/optimize/submission.h"

namespace fusion {

// Keeps what the user has uploaded. InvalidArgument: the bytes have another digest.
absl::Status StoreInputFile(BuildStore& store, const std::string& user, const std::string& bytes,
                            const std::string& digest, Timestamp now);

// Whether the user has uploaded what inputs of the graph are to be read from, with as many bytes as they have
// entries at these sizes. FailedPrecondition says what to upload again, of all of them; of what others have
// uploaded nobody learns. InvalidArgument: they are too large together.
absl::Status CheckInputFiles(BuildStore& store, const std::string& user, const Submission& source);

// The same; they stay until the job, which is the user's, has ended.
absl::Status HoldInputFiles(Store& store, const std::string& job, const Submission& source,
                            Timestamp now);

}  // namespace fusion
