// The protobuf and JSON forms of a graph.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "fusion/v1/graph.pb.h"
#include "server/parse/error_list.h"
#include "server/parse/syntax.h"

namespace fusion {

// Reads a message, which must outlive the tree. Errors are placed by field ("calls[3].arguments[1]"). Reads
// nothing but reports when there are more than `max_calls` calls.
SyntaxTree ReadGraph(const v1::Graph& graph, int max_calls, ErrorList* errors);

// Reads JSON of fusion.v1.Graph, as protobuf's JSON mapping has it. Returns false after reporting: errors of
// syntax by line and column, unknown fields and wrong types by field.
bool ReadJson(absl::string_view json, v1::Graph* graph, ErrorList* errors);

}  // namespace fusion
