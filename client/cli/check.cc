#include "server/loops/check.h"

#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "client/cli/c_source.h"
#include "client/cli/invocation.h"
#include "client/cli/render.h"
#include "client/cli/source_file.h"
#include "client/cli/target_option.h"
#include "google/protobuf/util/json_util.h"
#include "server/loops/metafork.h"
#include "server/loops/rearranged.h"
#include "server/loops/statement_checks.h"

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

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kIndependent:
      return "independent";
    case Verdict::kCarried:
      return "carried";
    case Verdict::kReduction:
      return "reduction";
    case Verdict::kUnknown:
      break;
  }
  return "unknown";
}

// Loops are judged here: it takes no server, no library of functions and no device.
ExitCode CheckC(const Invocation& invocation, const CheckOptions& options) {
  if (!options.sizes.empty())
    return invocation.Report(
        absl::InvalidArgumentError("--size is for graphs; loops are judged for all sizes"));
  if (!options.print.empty() && options.print != "metafork")
    return invocation.Report(absl::InvalidArgumentError("loops are printed as metafork"));
  absl::StatusOr<std::string> text = ReadC(options.file);
  if (!text.ok()) return invocation.Report(text.status());
  if (options.print == "metafork") {
    const absl::StatusOr<std::string> printed = PrintMetaFork(*text, options.file);
    if (!printed.ok()) return ReportWithSource(invocation, printed.status(), {options.file, {}, *text});
    std::cout << *printed;
    return kDone;
  }
  const auto checked = CheckLoops(*text, options.file);
  if (!checked.ok()) {
    SourceFile file{.name = options.file, .source = {}, .text = *std::move(text)};
    return ReportWithSource(invocation, checked.status(), file);
  }
  std::set<std::pair<int, int>> in_another_order;  // places of loops that are parallel there
  if (const std::optional<CheckedProgram> rearranged = Rearranged(*checked))
    for (const CheckedLoop& loop : rearranged->loops)
      if (loop.verdict.verdict == Verdict::kIndependent)
        in_another_order.emplace(loop.position.line, loop.position.column);
  Json list = Json::array();
  for (const CheckedLoop& loop : checked->loops) {
    const bool other = loop.verdict.verdict != Verdict::kIndependent &&
                       in_another_order.count({loop.position.line, loop.position.column}) > 0;
    if (!invocation.json) {
      std::cout << LoopText(loop, options.file) << (other ? "; in another order it is parallel: proved" : "")
                << "\n";
      continue;
    }
    Json one = {{"line", loop.position.line},
                {"column", loop.position.column},
                {"counter", loop.counter},
                {"verdict", VerdictName(loop.verdict.verdict)},
                {"claimed", loop.claim == Claim::kMetaFor || loop.claim == Claim::kOpenMp}};
    if (other) one["in_another_order"] = true;
    if (!loop.verdict.text.empty()) one["because"] = loop.verdict.text;
    if (!loop.verdict.witness.empty()) one["witness"] = loop.verdict.witness;
    list.push_back(std::move(one));
  }
  Json notes = Json::array();
  for (const LoopNote& note : NotesOf(checked->program)) {
    if (invocation.json)
      notes.push_back({{"line", note.position.line}, {"column", note.position.column}, {"text", note.text}});
    else
      std::cout << NoteText(note, options.file) << "\n";
  }
  if (invocation.json)
    std::cout << JsonText(
        {{"schema", "fusion.loops/1"}, {"loops", std::move(list)}, {"notes", std::move(notes)}});
  return kDone;
}

ExitCode Check(const Invocation& invocation, const CheckOptions& options) {
  if (IsCFile(options.file)) return CheckC(invocation, options);
  if (options.print == "metafork")
    return invocation.Report(absl::InvalidArgumentError("graphs are not printed as metafork"));
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
  CLI::App* command =
      app->add_subcommand("check", "Check a graph, or whether loops in C are parallel; all errors at once");
  command
      ->add_option("FILE", options->file, "Graph: .fuse, .json or .pb; - reads .fuse from stdin. Loops: .c")
      ->required();
  command->add_option("--size", options->sizes, "Value of a size, as n=1000000; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--print", options->print,
                   "Print a graph as fuse, dot (Graphviz), json or proto (binary), loops as metafork")
      ->check(CLI::IsMember({"fuse", "dot", "json", "proto", "metafork"}));
  AddCommonOptions(command, invocation);
  command->callback([=] { invocation->run = [=] { return Check(*invocation, *options); }; });
}

}  // namespace fusion
