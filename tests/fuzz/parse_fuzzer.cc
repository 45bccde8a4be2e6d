// Any bytes as a source: the first decides the form, .fuse or JSON text or a serialised fusion.v1.Graph. A
// graph that is read must survive being printed and read again.
#include <cstddef>
#include <cstdint>
#include <string>

#include "server/parse/parse.h"
#include "tests/fuzz/message_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fusion;
  static const auto library = *Catalog::BuiltIn();
  SilenceProtobuf();
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  v1::GraphSource source;
  if (!bytes.empty() && bytes[0] == '\n') {
    if (!source.mutable_graph()->ParseFromString(bytes.substr(1))) return 0;
  } else {
    source.set_fuse(bytes);
  }
  const auto graph = ParseSource(source, library);
  if (!graph.ok()) {
    Require(graph.status().code() == absl::StatusCode::kInvalidArgument,
            "an error that is not InvalidArgument");
    Require(!graph.status().message().empty(), "an error without message");
    return 0;
  }
  if (ToProto(**graph).functions_size() > 0) return 0;  // the text form cannot describe inline functions
  v1::GraphSource printed;
  printed.set_fuse(PrintFuse(**graph));
  const auto again = ParseSource(printed, library);
  Require(again.ok(), "the printed text is not read");
  Require(PrintFuse(**again) == printed.fuse(), "the printed text changes");
  Require(GraphHash(**again) == GraphHash(**graph), "the hash changes");
  const auto sizes = ResolveSizes(**graph, source.size_values(), "");
  if (sizes.ok()) Require((*graph)->values().size() >= (*graph)->inputs().size(), "values are missing");
  return 0;
}
