#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_split.h"
#include "client/cli/c_source.h"
#include "client/cli/invocation.h"
#include "client/cli/option_checks.h"
#include "client/cli/source_file.h"
#include "client/cli/target_option.h"

namespace fusion {
namespace {

struct ExplainOptions {
  std::string file;
  std::vector<std::string> sizes;
  v1::Target target = v1::TARGET_AUTO;
  std::string arch, device;
  int candidates = 30;
  RankingOptions ranking;
  bool source = false;
  std::string dump_directory;
  std::vector<std::string> why;
};

ExitCode Explain(const Invocation& invocation, const ExplainOptions& options) {
  if (IsCFile(options.file))
    return invocation.Report(absl::InvalidArgumentError(absl::StrCat(
        options.file, ": explain reads graphs; of loops in C `fusion-client cases` tells the cases")));
  absl::StatusOr<SourceFile> file = ReadSource(options.file, options.sizes);
  if (!file.ok()) return invocation.Report(file.status());
  absl::StatusOr<std::string> address = ServerAddress(invocation);
  if (!address.ok()) return invocation.Report(address.status());
  if (!options.dump_directory.empty() && !address->empty())
    return invocation.Report(
        absl::InvalidArgumentError("--dump-dir works with the embedded server alone (--server embedded)"));

  EmbeddedOptions embedded;
  embedded.dump_directory = options.dump_directory;
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation, embedded);
  if (!client.ok()) return invocation.Report(client.status());
  InterruptHandler interrupt(client->get(), nullptr);

  v1::ExplainRequest request;
  *request.mutable_source() = std::move(file->source);
  request.set_target(options.target);
  request.set_arch(options.arch);
  request.set_device(options.device);
  request.set_candidates(options.candidates);
  request.set_cache(options.ranking.cache);
  request.set_deterministic(options.ranking.deterministic);
  *request.mutable_hints() = options.ranking.hints;
  if (options.ranking.most_fusions != 0) request.mutable_limits()->set_fusions(options.ranking.most_fusions);
  request.set_sources(options.source);
  for (const std::string& value : options.why) request.add_why(value);
  absl::StatusOr<v1::ExplainResponse> response = (*client)->Explain(request);
  if (!response.ok()) return ReportWithSource(invocation, response.status(), *file);
  if (invocation.json) {
    std::cout << JsonText(ExplainJson(*response));
  } else if (!options.why.empty()) {
    std::cout << response->pair().values(0) << " and " << response->pair().values(1) << ": "
              << (response->pair().together() ? "fused" : "not fused") << "; " << response->pair().text()
              << "\n";
  } else {
    // The text has them; code must stay code.
    if (options.source)
      for (const std::string& note : response->search().notes()) std::cerr << "note: " << note << "\n";
    std::cout << (options.source ? response->source() : response->text());
  }
  return kDone;
}

}  // namespace

void AddExplainCommand(CLI::App* app, Invocation* invocation) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = app->add_subcommand(
      "explain", "Search and predict without building anything: what would be built, and why");
  command->add_option("FILE", options->file, "Graph: .fuse, .json or .pb; - reads .fuse from stdin")
      ->required();
  command->add_option("--size", options->sizes, "Value of a size, as n=1000000; may be repeated")
      ->allow_extra_args(false);
  AddTargetOption(command, &options->target);
  command->add_option(
      "--arch", options->arch,
      "Architecture, as sm_90; an unknown one is the nearest older one (default: that of the device)");
  AddDeviceOption(command, &options->device);
  command->add_option("--candidates", options->candidates, "Most implementations to list")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  AddRankingOptions(command, &options->ranking);
  command
      ->add_option_function<std::string>(
          "--why",
          [options](const std::string& pair) {
            options->why = absl::StrSplit(pair, ',');
            for (std::string& value : options->why) absl::StripAsciiWhitespace(&value);
            if (options->why.size() != 2) throw CLI::ValidationError("--why", "takes two values: A,B");
          },
          "Why two values are, or are not, computed in one kernel")
      ->type_name("A,B");
  command->add_flag("--source", options->source, "Print the generated code of the best candidate");
  command
      ->add_option("--dump-dir", options->dump_directory,
                   "Folder for the text of every stage (embedded server)")
      ->check(NotEmpty());
  AddCommonOptions(command, invocation);
  command->callback([=] { invocation->run = [=] { return Explain(*invocation, *options); }; });
}

}  // namespace fusion
