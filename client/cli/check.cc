#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "client/cli/invocation.h"
#include "client/cli/source_file.h"
#include "client/cli/target_option.h"
#include "google/protobuf/util/json_util.h"

namespace fusion {
namespace {

struct CheckOptions {
  std::string file;
  std::vector<std::string> sizes;
  std::string print;
};

absl::StatusOr<std::string> Printed(const v1::CheckResponse& response, const std::string& form) {
  if (form == "fuse" && response.fuse().empty())
    return absl::InvalidArgumentError(
        "the graph has functions of its own, for which the language has no words: print it as json or proto");
  if (form == "fuse") return response.fuse();
  if (form == "dot") return response.graphviz();
  if (form == "proto") return response.proto().SerializeAsString();
  std::string json;
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  auto status = google::protobuf::util::MessageToJsonString(response.proto(), &json, options);
  if (!status.ok()) return absl::InternalError(std::string(status.message()));
  return json;
}

ExitCode Check(const Invocation& invocation, const CheckOptions& options) {
  absl::StatusOr<SourceFile> file = ReadSource(options.file, options.sizes);
  if (!file.ok()) return invocation.Report(file.status());
  EmbeddedOptions embedded;
  embedded.ephemeral = true;
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation, embedded);
  if (!client.ok()) return invocation.Report(client.status());
  v1::CheckRequest request;
  *request.mutable_source() = std::move(file->source);
  request.set_brief(options.print.empty());
  absl::StatusOr<v1::CheckResponse> response = (*client)->Check(request);
  if (!response.ok()) return ReportWithSource(invocation, response.status(), *file);
  if (!options.print.empty()) {
    absl::StatusOr<std::string> text = Printed(*response, options.print);
    if (!text.ok()) return invocation.Report(text.status());
    std::cout << *text;
  } else {
    std::cout << (invocation.json ? JsonText(CheckJson(*response)) : CheckText(*response));
  }
  return kDone;
}

}  // namespace

void AddCheckCommand(CLI::App* app, Invocation* invocation) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = app->add_subcommand("check", "Parse and type check a graph; all errors at once");
  command->add_option("FILE", options->file, "Graph: .fuse, .json or .pb; - reads .fuse from stdin")
      ->required();
  command->add_option("--size", options->sizes, "Value of a size, as n=1000000; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--print", options->print,
                   "Print the graph as fuse, dot (Graphviz), json or proto (binary)")
      ->check(CLI::IsMember({"fuse", "dot", "json", "proto"}));
  AddCommonOptions(command, invocation);
  command->callback([=] { invocation->run = [=] { return Check(*invocation, *options); }; });
}

}  // namespace fusion
