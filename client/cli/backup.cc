#include <iostream>
#include <memory>
#include <string>

#include "client/cli/invocation.h"

namespace fusion {
namespace {

ExitCode BackUp(const Invocation& invocation) {
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation);
  if (!client.ok()) return invocation.Report(client.status());
  absl::StatusOr<v1::BackUpResponse> written = (*client)->BackUp();
  if (!written.ok()) return invocation.Report(written.status());
  if (invocation.json)
    std::cout << JsonText(
        {{"schema", "fusion.backup/1"}, {"path", written->path()}, {"bytes", written->bytes()}});
  else
    std::cout << written->path() << " (" << written->bytes() << " bytes"
              << ((*client)->embedded() ? "" : ", on the server's machine") << ")\n";
  return kDone;
}

}  // namespace

void AddBackupCommand(CLI::App* app, Invocation* invocation) {
  CLI::App* command = app->add_subcommand("backup", "Have the server write a copy of its database beside it");
  AddCommonOptions(command, invocation);
  command->callback([=] { invocation->run = [=] { return BackUp(*invocation); }; });
}

}  // namespace fusion
