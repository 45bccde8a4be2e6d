// The folder in which a server keeps its database, and exported folders are put.
#pragma once

#include <string>

#include "absl/status/status.h"

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

}  // namespace fusion
