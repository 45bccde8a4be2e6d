// The part of an exported folder that is loaded without a compiler.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fusion/v1/artifact.pb.h"

namespace fusion {

// Adds binary/program.json, the program as protobuf JSON with the field names of the .proto and no field left
// out, and binary/<hex of the digest>.cubin for every binary that it launches, each once. read_binary gives
// the bytes of a digest; its errors are returned.
absl::Status AddLoadableFiles(
    const v1::LoadableProgram& program,
    const std::function<absl::StatusOr<std::string>(const std::string&)>& read_binary,
    v1::Artifact* artifact);

}  // namespace fusion
