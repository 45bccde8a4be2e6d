// Makes copies of the database of a running server.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "db/store/store.h"
#include "fusion/v1/admin.pb.h"

namespace fusion {

// Writes a consistent copy into the data directory, named after `now` ("fusion-backup-20261122T065920Z.db"),
// checks it, and says where it is. The store stays in use. ResourceExhausted: the disk is full; DataLoss: the
// copy is damaged, as the database then is too; the copy is kept.
absl::StatusOr<v1::BackUpResponse> BackUpStore(Store& store, const std::string& data_directory,
                                               Timestamp now);

// Tells people, after "; ", what to do about a damaged database of the data directory: the command that puts
// a backup in its place, with the newest backup that lies beside it where there is one.
std::string RestoreAdvice(const std::string& data_directory);

}  // namespace fusion
