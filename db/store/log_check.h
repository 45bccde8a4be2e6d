// Checks whether the write-ahead log of a database lost something that was committed. Private to db/store.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace fusion {

// Reads the log beside the database at `path`, which nobody has open. SQLite leaves out what follows the
// first frame that is not whole, and says nothing: this is right for the last transaction, which a crash may
// have torn, but a loss where more follow. DATA_LOSS: the header of a log that has frames is damaged, or two
// commits follow behind a damaged frame, one of which had been made safe before the other was begun.
// INTERNAL: the log cannot be read. OK where there is no log. The format is SQLite's
// (https://sqlite.org/fileformat.html, "The Write-Ahead Log").
absl::Status CheckLog(const std::string& path);

}  // namespace fusion
