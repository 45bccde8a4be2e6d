#include <iostream>
#include <memory>

#include "client/cli/invocation.h"

namespace fusion {
namespace {

absl::StatusOr<v1::ListFunctionsResponse> Functions(const Invocation& invocation, const std::string& name) {
  EmbeddedOptions embedded;
  embedded.ephemeral = true;
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation, embedded);
  if (!client.ok()) return client.status();
  return (*client)->ListFunctions(name);
}

ExitCode List(const Invocation& invocation) {
  absl::StatusOr<v1::ListFunctionsResponse> functions = Functions(invocation, "");
  if (!functions.ok()) return invocation.Report(functions.status());
  std::cout << (invocation.json ? JsonText(FunctionListJson(*functions))
                                : FunctionListText(*functions, invocation.Style()));
  return kDone;
}

ExitCode Show(const Invocation& invocation, const std::string& name) {
  absl::StatusOr<v1::ListFunctionsResponse> functions = Functions(invocation, name);
  if (!functions.ok()) return invocation.Report(functions.status());
  for (const v1::FunctionDefinition& function : functions->functions())
    std::cout << (invocation.json ? JsonText(FunctionJson(function, functions->library_hash()))
                                  : FunctionText(function));
  return kDone;
}

}  // namespace

void AddLibraryCommands(CLI::App* app, Invocation* invocation) {
  CLI::App* library = app->add_subcommand("library", "Elementary functions");
  CLI::App* list = library->add_subcommand("list", "All functions");
  AddCommonOptions(list, invocation);
  list->callback([=] { invocation->run = [=] { return List(*invocation); }; });

  auto name = std::make_shared<std::string>();
  CLI::App* show = library->add_subcommand("show", "Signatures and implementations of one function");
  show->add_option("NAME", *name, "Name of the function")->required();
  AddCommonOptions(show, invocation);
  show->callback([=] { invocation->run = [=] { return Show(*invocation, *name); }; });
}

}  // namespace fusion
