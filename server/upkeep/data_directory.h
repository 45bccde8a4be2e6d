// Prepares the folders in which a server keeps its database and puts exported folders.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace fusion {

// Returns $FUSION_DATA_DIR, else $XDG_DATA_HOME/fusion, else $HOME/.local/share/fusion, else (no home)
// fusion-<uid> in the folder for temporary files.
std::string DefaultDataDirectory();

// Creates the folder and its parents when absent (the folder itself with mode 0700). Unavailable
// when that fails; the message says how to choose another.
absl::Status PrepareDataDirectory(const std::string& directory);

// Returns whether a server uses the folder. One that starts at this moment may be refused.
bool DataDirectoryInUse(const std::string& directory);

// Creates the folder of --dump-dir and its parents, unless `directory` is empty. InvalidArgument when the
// folder cannot be written to.
absl::Status PrepareDumpDirectory(const std::string& directory);

// Returns the path of the database in a data directory. Opening the database locks it (db/store/store.h), so
// one server uses a data directory.
std::string DatabasePath(const std::string& directory);

}  // namespace fusion
