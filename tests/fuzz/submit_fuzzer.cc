// Any bytes as a SubmitRequest, through all that Submit checks before a job is stored. What begins like
// neither form of a message is a request with that .fuse text.
#include <cstddef>
#include <cstdint>

#include "server/optimize/hints.h"
#include "server/optimize/submission.h"
#include "server/parse/parse.h"
#include "tests/fuzz/message_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fusion;
  static const auto library = *Catalog::BuiltIn();
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  v1::SubmitRequest request;
  if (!ReadMessage(bytes, &request)) {
    request.Clear();
    request.mutable_source()->set_fuse(bytes);
  }
  if (!Decodable(request)) return 0;
  const auto typed = [](const absl::Status& status) {
    Require(absl::IsInvalidArgument(status) || absl::IsNotFound(status), "an error of another kind");
    Require(!status.message().empty(), "an error without message");
    return 0;
  };
  if (absl::Status status = CheckRequestFields(request); !status.ok()) return typed(status);
  const absl::StatusOr<Submission> source = CheckSource(request.source(), library);
  if (!source.ok()) return typed(source.status());
  if (absl::Status status = CheckBuildable(*source->graph); !status.ok()) return typed(status);
  if (absl::Status status = CheckBenchmark(*source->graph); !status.ok()) typed(status);
  if (const auto hints = ResolveHints(*source->graph, request.hints()); !hints.ok())
    return typed(hints.status());
  Require(source->summary.nodes() == source->graph->node_count(), "the summary is of another graph");
  return 0;
}
