// A graph as the user gives it: a .fuse text, protobuf (.pb) or its JSON (.json), or "-" for .fuse on stdin.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "fusion/v1/graph.pb.h"

namespace fusion {

inline constexpr size_t kMaximumSourceBytes = size_t{64} << 20;

struct SourceFile {
  std::string name;  // as errors say it: the path, or "<stdin>"
  v1::GraphSource source;
  std::string text;  // of a .fuse file, to show lines of it with errors
};

// Reads FILE and adds the sizes, each "name=value". InvalidArgument for everything that is the user's to
// mend: no such file, a folder, larger than kMaximumSourceBytes, no UTF-8 (with the position of the first bad
// byte), no such message, no "name=value". Line and column count from 1, columns in characters.
absl::StatusOr<SourceFile> ReadSource(const std::string& path, const std::vector<std::string>& sizes);

// Adds sizes, each "name=value". InvalidArgument: one is none.
absl::Status AddSizes(const std::vector<std::string>& sizes, v1::GraphSource* source);

// The lines of `message`, and below each "<file_name>:LINE:COLUMN: ..." that line of `text` with a caret
// under the column. Lines of text over 100 characters are shown around the column.
std::string WithSourceLines(absl::string_view message, absl::string_view file_name, absl::string_view text);

}  // namespace fusion
