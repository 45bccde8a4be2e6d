// The folder in which a server keeps its database, and exported folders are put.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace fusion {

// $FUSION_DATA_DIR, else $XDG_DATA_HOME/fusion, else $HOME/.local/share/fusion, else (no home) fusion-<uid>
// in the folder for temporary files.
std::string DefaultDataDirectory();

// Creates the folder and its parents when absent (the folder itself with mode 0700). Unavailable
// when that fails; the message says how to choose another.
absl::Status PrepareDataDirectory(const std::string& directory);

// The same for the folder of --dump-dir, if one is asked for (not empty). InvalidArgument when it cannot be
// written to.
absl::Status PrepareDumpDirectory(const std::string& directory);

// The database in a data directory. Opening it locks it (db/store/store.h), so one server uses a data
// directory.
std::string DatabasePath(const std::string& directory);

// A new folder for temporary files that is removed with everything in it by the destructor.
class TemporaryDirectory {
 public:
  static absl::StatusOr<std::unique_ptr<TemporaryDirectory>> Create();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryDirectory(std::string path);
  const std::string path_;
};

}  // namespace fusion
