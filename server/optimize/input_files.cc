#include "server/optimize/input_files.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/rpc/chunks.h"
#include "base/rpc/status_conversion.h"
#include "base/status_macros.h"

namespace fusion {
namespace {

std::string KeyOf(const std::string& user, int64_t bytes, const std::string& digest) {
  return absl::StrCat("input/", bytes, "/", digest, "/", user);
}

std::vector<std::string> KeysOf(const std::string& user, const std::vector<InputFile>& files) {
  std::vector<std::string> keys;
  for (const InputFile& file : files) keys.push_back(KeyOf(user, file.bytes, file.blob));
  return keys;
}

absl::Status AllThere(const std::string& user, const std::vector<InputFile>& files,
                      const absl::StatusOr<std::map<std::string, BuildRecord>>& found) {
  if (!found.ok()) return found.status();
  std::string missing;
  for (const InputFile& file : files)
    if (!found->contains(KeyOf(user, file.bytes, file.blob)))
      absl::StrAppend(&missing, missing.empty() ? "" : "\n", "the values of input ", file.input, ", ",
                      file.bytes, " bytes with the digest ", file.blob,
                      ", are not here: upload them again, then submit");
  return missing.empty() ? absl::OkStatus() : absl::FailedPreconditionError(missing);
}

}  // namespace

absl::Status StoreInputFile(BuildStore& store, const std::string& user, const std::string& bytes,
                            const std::string& digest, Timestamp now) {
  FUSION_RETURN_IF_ERROR(store.PutBlob(bytes, digest, now).status());
  return store.PutBuild({.key = KeyOf(user, static_cast<int64_t>(bytes.size()), digest),
                         .outcome = "OK",
                         .binary_digest = digest,
                         .created = now});
}

std::vector<InputFile> InputFilesOf(const Submission& source) {
  std::vector<InputFile> files;
  for (ValueId id : source.graph->inputs()) {
    const Value& input = source.graph->value(id);
    if (input.values.kind() == v1::InputValues::FILE)
      files.push_back({input.name, input.type.Bytes(source.sizes), input.values.blob()});
  }
  return files;
}

absl::Status CheckInputFiles(BuildStore& store, const std::string& user,
                             const std::vector<InputFile>& files) {
  if (files.empty()) return absl::OkStatus();
  // Not as one sum, which could be beyond 64 bits.
  int64_t left = kMaximumInputFileBytes;
  for (const InputFile& file : files) {
    if (file.bytes > left)
      return InvalidField("source.input_values",
                          absl::StrCat("the values of inputs that come from files have more than ",
                                       kMaximumInputFileBytes >> 20, " MiB together with those of ",
                                       file.input, ", which is the most that a job takes"));
    left -= file.bytes;
  }
  return AllThere(user, files, store.FindBuilds(KeysOf(user, files)));
}

absl::Status HoldInputFiles(Store& store, const std::string& job, const std::vector<InputFile>& files,
                            Timestamp now) {
  if (files.empty()) return absl::OkStatus();
  FUSION_ASSIGN_OR_RETURN(JobRecord record, store.GetJob(job));
  return AllThere(record.user, files, store.UseBuilds(job, KeysOf(record.user, files), now));
}

}  // namespace fusion
