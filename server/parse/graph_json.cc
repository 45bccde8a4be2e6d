#include "server/parse/graph_json.h"

#include "server/parse/error_list.h"
#include "server/parse/proto_reader.h"

namespace fusion {

absl::Status ReadGraphJson(absl::string_view text, const std::string& file_name, v1::Graph* graph) {
  ErrorList errors(file_name);
  return ReadJson(text, graph, &errors) ? absl::OkStatus() : errors.ToStatus();
}

}  // namespace fusion
