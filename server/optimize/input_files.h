// Values of inputs may come from files, which are uploaded before a job is submitted and read by the workers
// that time its candidates. In the store the files are entries of the build cache whose keys name the user,
// the size and the digest, so they stay as long as an unfinished job has them and go, the least recently used
// first, when the cache is full.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "db/store/store.h"
#include "server/optimize/submission.h"

namespace fusion {

// Keeps what the user has uploaded. InvalidArgument: the bytes have another digest.
absl::Status StoreInputFile(BuildStore& store, const std::string& user, const std::string& bytes,
                            const std::string& digest, Timestamp now);

// Values of an input that come from a file.
struct InputFile {
  std::string input;  // its name
  int64_t bytes = 0;  // that it takes
  std::string blob;   // digest
};
std::vector<InputFile> InputFilesOf(const Submission& source);

// Checks that the user has uploaded these files, each with as many bytes as the input's entries have.
// FailedPrecondition lists all files to upload again; it tells nobody what other users have uploaded.
// InvalidArgument: they are too large together.
absl::Status CheckInputFiles(BuildStore& store, const std::string& user, const std::vector<InputFile>& files);

// Checks that the files of the job's user are there, and keeps them until the job has ended.
absl::Status HoldInputFiles(Store& store, const std::string& job, const std::vector<InputFile>& files,
                            Timestamp now);

}  // namespace fusion
