#include <chrono>
#include <iostream>
#include <memory>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/invocation.h"

namespace fusion {
namespace {

ExitCode ListWorkers(const Invocation& invocation) {
  EmbeddedOptions embedded;
  embedded.ephemeral = true;
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation, embedded);
  if (!client.ok()) return invocation.Report(client.status());
  (*client)->StartEmbeddedWorker(v1::TARGET_AUTO);
  absl::StatusOr<v1::ListWorkersResponse> workers = (*client)->ListWorkers();
  // The embedded worker appears when it has measured its devices.
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while ((*client)->embedded() && workers.ok() && workers->workers().empty() &&
         std::chrono::steady_clock::now() < patience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    workers = (*client)->ListWorkers();
  }
  if (!workers.ok()) return invocation.Report(workers.status());
  std::cout << (invocation.json ? JsonText(WorkerListJson(*workers))
                                : WorkerListText(*workers, invocation.Style()));
  return kDone;
}

ExitCode Drain(const Invocation& invocation, const std::string& given) {
  absl::StatusOr<std::string> address = ServerAddress(invocation);
  if (!address.ok()) return invocation.Report(address.status());
  if (address->empty())
    return invocation.Report(absl::InvalidArgumentError(
        "there is no server to drain a worker of; name it with --server HOST:PORT"));
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation);
  if (!client.ok()) return invocation.Report(client.status());
  const std::string name = absl::StartsWith(given, "workers/") ? given : absl::StrCat("workers/", given);
  absl::StatusOr<v1::Worker> worker = (*client)->DrainWorker(name);
  if (!worker.ok()) return invocation.Report(worker.status());
  v1::ListWorkersResponse one;
  *one.add_workers() = *worker;
  std::cout << (invocation.json ? JsonText(WorkerListJson(one)) : WorkerListText(one, invocation.Style()));
  return kDone;
}

}  // namespace

void AddWorkersCommands(CLI::App* app, Invocation* invocation) {
  CLI::App* workers = app->add_subcommand("workers", "Machines that build and time");
  CLI::App* list = workers->add_subcommand("list", "Workers and their devices");
  AddCommonOptions(list, invocation);
  list->callback([=] { invocation->run = [=] { return ListWorkers(*invocation); }; });

  auto name = std::make_shared<std::string>();
  CLI::App* drain =
      workers->add_subcommand("drain", "Let a worker finish what it runs, and give it nothing new");
  drain->add_option("WORKER", *name, "workers/ID, or ID")->required();
  AddCommonOptions(drain, invocation);
  drain->callback([=] { invocation->run = [=] { return Drain(*invocation, *name); }; });
}

}  // namespace fusion
