// Reads graphs in the JSON form of fusion.v1.Graph from the text of files.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "fusion/v1/graph.pb.h"

namespace fusion {

// Reads the text, which is UTF-8. InvalidArgument has a line "FILE:..." for each mistake, as for a .fuse
// source.
absl::Status ReadGraphJson(absl::string_view text, const std::string& file_name, v1::Graph* graph);

}  // namespace fusion
