// The files of a function: function.textproto and routines.h.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/catalog.pb.h"

namespace fusion {

// The contents of one folder <domain>/<name>.
struct FunctionFiles {
  std::string folder;       // for messages: ".../<domain>/<name>"; its last two parts must be domain and name
  std::string description;  // function.textproto
  std::string source;       // routines.h
};

// Parses and checks one function; `source` becomes FunctionDefinition::source. InvalidArgument:
// "file:line:column: what is wrong", the first error only.
absl::StatusOr<v1::FunctionDefinition> ParseFunctionFiles(const FunctionFiles& files);

// Reads every <directory>/<domain>/<name>/ in order of path. NotFound when a file is missing.
absl::StatusOr<std::vector<FunctionFiles>> ReadFunctionDirectory(const std::string& directory);

// The functions that were embedded into the program (embedded_files.h), in order of path.
std::vector<FunctionFiles> EmbeddedFunctionFiles();

}  // namespace fusion
