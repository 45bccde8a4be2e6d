// Sources for tests of the parser.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "server/parse/parse.h"

namespace fusion::testing {

inline std::shared_ptr<const Catalog> Library() {
  static const auto* library = new absl::StatusOr<std::shared_ptr<const Catalog>>(Catalog::BuiltIn());
  EXPECT_TRUE(library->ok()) << library->status();
  return **library;
}

inline absl::StatusOr<std::shared_ptr<const Graph>> ParseText(const std::string& text,
                                                              const std::string& file_name = "f.fuse",
                                                              const ParseOptions& options = {}) {
  v1::GraphSource source;
  source.set_fuse(text);
  source.set_file_name(file_name);
  return ParseSource(source, Library(), options);
}

inline absl::StatusOr<std::shared_ptr<const Graph>> ParseMessage(const v1::Graph& graph,
                                                                 const std::string& file_name = "f.pb",
                                                                 const ParseOptions& options = {}) {
  v1::GraphSource source;
  *source.mutable_graph() = graph;
  source.set_file_name(file_name);
  return ParseSource(source, Library(), options);
}

// The lines of the message, or "ok".
template <class T>
std::string Errors(const absl::StatusOr<T>& result) {
  if (result.ok()) return "ok";
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(result.status().message());
}

// Errors of a text in the file "f.fuse".
inline std::string TextErrors(const std::string& text) { return Errors(ParseText(text)); }

inline google::protobuf::Map<std::string, int64_t> Given(const std::map<std::string, int64_t>& values) {
  return {values.begin(), values.end()};
}

}  // namespace fusion::testing
