#include <iostream>
#include <memory>

#include "base/status_macros.h"
#include "client/cli/invocation.h"
#include "client/cli/source_file.h"
#include "client/cli/target_option.h"
#include "client/cli/watch.h"

namespace fusion {
namespace {

absl::StatusOr<v1::ListFunctionsResponse> Functions(const Invocation& invocation, const std::string& name) {
  EmbeddedOptions embedded;
  embedded.ephemeral = true;
  FUSION_ASSIGN_OR_RETURN(std::unique_ptr<Client> client, OpenClient(invocation, embedded));
  return client->ListFunctions(name);
}

ExitCode ListFunctions(const Invocation& invocation) {
  absl::StatusOr<v1::ListFunctionsResponse> functions = Functions(invocation, "");
  if (!functions.ok()) return invocation.Report(functions.status());
  std::cout << (invocation.json ? JsonText(FunctionListJson(*functions))
                                : FunctionListText(*functions, invocation.Style()));
  return kDone;
}

ExitCode ShowFunction(const Invocation& invocation, const std::string& name) {
  absl::StatusOr<v1::ListFunctionsResponse> functions = Functions(invocation, name);
  if (!functions.ok()) return invocation.Report(functions.status());
  for (const v1::FunctionDefinition& function : functions->functions())
    std::cout << (invocation.json ? JsonText(FunctionJson(function, functions->library_hash()))
                                  : FunctionText(function));
  return kDone;
}

struct BenchOptions {
  std::string file;  // "": the whole library
  v1::Target target = v1::TARGET_AUTO;
  std::string arch;
  bool again = false;
};

ExitCode Bench(const Invocation& invocation, const BenchOptions& options) {
  v1::SubmitRequest request;
  SourceFile file;
  if (!options.file.empty()) {
    absl::StatusOr<SourceFile> read = ReadSource(options.file, {});
    if (!read.ok()) return invocation.Report(read.status());
    file = *std::move(read);
    *request.mutable_source() = file.source;
  }
  request.set_target(options.target);
  request.set_arch(options.arch);
  request.mutable_benchmark()->set_again(options.again);
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation, EmbeddedOptions());
  if (!client.ok()) return invocation.Report(client.status());
  absl::StatusOr<v1::Job> job = (*client)->Submit(request, SayOnceWhyItWaits());
  if (!job.ok()) return ReportWithSource(invocation, job.status(), file);
  (*client)->StartEmbeddedWorker(options.target);
  WatchOptions watch;
  watch.worker_starts = true;
  return WatchToEnd(invocation, client->get(), job->name(), watch);
}

}  // namespace

void AddLibraryCommands(CLI::App* app, Invocation* invocation) {
  CLI::App* library = app->add_subcommand("library", "Elementary functions");
  CLI::App* list = library->add_subcommand("list", "All functions");
  AddCommonOptions(list, invocation);
  list->callback([=] { invocation->run = [=] { return ListFunctions(*invocation); }; });

  auto name = std::make_shared<std::string>();
  CLI::App* show = library->add_subcommand("show", "Signatures and implementations of one function");
  show->add_option("NAME", *name, "Name of the function")->required();
  AddCommonOptions(show, invocation);
  show->callback([=] { invocation->run = [=] { return ShowFunction(*invocation, *name); }; });

  auto options = std::make_shared<BenchOptions>();
  CLI::App* bench = library->add_subcommand(
      "bench",
      "Measure the routines of element functions on a device, for later predictions; known times are kept");
  bench->add_option("FILE", options->file,
                    "Graph (.fuse, .json or .pb; - reads .fuse from stdin) whose functions are measured at "
                    "their shapes and types "
                    "(default: all functions at small shapes, in single precision)");
  AddTargetOption(bench, &options->target);
  bench->add_option("--arch", options->arch, "Architecture, as sm_90 (default: that of the device)");
  bench->add_flag("--again", options->again, "Also routines whose times are known");
  AddCommonOptions(bench, invocation);
  bench->callback([=] { invocation->run = [=] { return Bench(*invocation, *options); }; });
}

}  // namespace fusion
