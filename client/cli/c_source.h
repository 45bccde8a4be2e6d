// C as the user gives it: preprocessed by the compiler of this machine where it has to be.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/cli/source_file.h"

namespace fusion {

bool IsCFile(absl::string_view path);  // by its ending: .c or .h

// Reads a file. One that has macros or includes files of its own goes through `cc -E`; of the result the
// lines that stand in the file itself remain, in their places. InvalidArgument: it cannot be read, or `cc`
// reports errors, which the message has.
absl::StatusOr<std::string> ReadC(const std::string& path);

// Reads a file as a source to submit, with sizes, each "name=value", as ReadSource does.
absl::StatusOr<SourceFile> ReadLoops(const std::string& path, const std::vector<std::string>& sizes);

// Returns the lines of `path` from the output of `cc -E`, each at its number. Requires line markers.
std::string LinesOfFile(absl::string_view preprocessed, absl::string_view path);

}  // namespace fusion
