#include "server/optimize/loadable_program.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "google/protobuf/util/json_util.h"

namespace fusion {

absl::Status AddLoadableFiles(
    const v1::LoadableProgram& program,
    const std::function<absl::StatusOr<std::string>(const std::string&)>& read_binary,
    v1::Artifact* artifact) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  auto printed = google::protobuf::util::MessageToJsonString(program, &json, options);
  if (!printed.ok()) return absl::InternalError(absl::StrCat("program.json: ", printed.ToString()));
  auto add = [&](const std::string& path, std::string content) {
    v1::ArtifactFile* file = artifact->add_files();
    file->set_path(path);
    file->set_content(std::move(content));
  };
  add("binary/program.json", std::move(json));
  std::set<std::string> added;
  for (const v1::Launch& launch : program.program().launches()) {
    if (!added.insert(launch.binary()).second) continue;
    FUSION_ASSIGN_OR_RETURN(auto binary, read_binary(launch.binary()));
    // A digest's colon is no letter for a file name.
    add(absl::StrCat("binary/", absl::StripPrefix(launch.binary(), "sha256:"), ".cubin"), std::move(binary));
  }
  return absl::OkStatus();
}

}  // namespace fusion
