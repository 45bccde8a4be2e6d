// Sources of graphs, read and written: the .fuse language, the protobuf form and its JSON. README.md of this
// folder has the grammar. Every function here is thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "fusion/v1/graph.pb.h"
#include "library/catalog/catalog.h"
#include "server/graph/graph.h"

namespace fusion {

// Limits on what a client may send.
struct ParseOptions {
  int max_nodes = 100000;
  size_t max_bytes = size_t{4} << 20;           // of text, .fuse or JSON
  size_t max_message_bytes = size_t{32} << 20;  // of the protobuf form
};

// Reads a source: protobuf; or text, which is JSON of fusion.v1.Graph when its first visible character is
// '{', and .fuse otherwise. The graph is named after the file, without folder and extension, or as the
// protobuf form says. Its inline functions come on top of `catalog`.
//
// InvalidArgument reports all errors at once, sorted by position, each mistake once, at most 100 of them. The
// message has a line "FILE:LINE:COL: error: TEXT" for each, or "FILE:FIELD: error: TEXT" for the protobuf
// form, with a field such as "calls[3].arguments[1]". A payload of type google.rpc.BadRequest has a
// FieldViolation for each.
absl::StatusOr<std::shared_ptr<const Graph>> ParseSource(const v1::GraphSource& source,
                                                         std::shared_ptr<const Catalog> catalog,
                                                         const ParseOptions& options = {});

// Returns values for all sizes of a graph: those given, else the defaults of the file. 0 is allowed.
// InvalidArgument, in the form of ParseSource, for sizes without a value, values for sizes that the graph
// does not have, negative ones, and variables that would have more than 2^62 bytes.
absl::StatusOr<SizeValues> ResolveSizes(const Graph& graph,
                                        const google::protobuf::Map<std::string, int64_t>& given,
                                        const std::string& file_name);

// Returns whether the graph calls inline functions, which the text form cannot describe.
bool HasInlineFunctions(const Graph& graph);

// Returns the graph as .fuse text, in a fixed layout. Reading it back and printing again gives the same text,
// unless HasInlineFunctions: of inline functions only the calls are printed. Of inputs that are read from a
// file it has the names.
std::string PrintFuse(const Graph& graph);

// Returns the graph in the language of Graphviz dot: inputs and outputs as boxes, calls as ellipses, edges
// labelled with the variable and its type.
std::string PrintGraphviz(const Graph& graph);

// Returns the protobuf form, inline functions included. ParseSource gives an equal graph back, but for inputs
// that are read from a file, of which a graph says nothing.
v1::Graph ToProto(const Graph& graph);

// Returns ToProto as JSON, indented. ParseSource reads it.
std::string PrintJson(const Graph& graph);

}  // namespace fusion
