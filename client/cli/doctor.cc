#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/api/embedded.h"
#include "client/cli/doctor_report.h"
#include "client/cli/invocation.h"
#include "client/cli/number_format.h"
#include "worker/agent/local_machine.h"

namespace fusion {
namespace {

Finding Nvcc() {
  const char* path = std::getenv("PATH");
  std::vector<std::string> folders = absl::StrSplit(path == nullptr ? "" : path, ':');
  folders.push_back("/usr/local/cuda/bin");
  Finding finding{"nvcc", false, "not in PATH", "exported CUDA folders must be compiled on another machine"};
  for (const std::string& folder : folders) {
    const std::string program = absl::StrCat(folder, "/nvcc");
    if (folder.empty() || access(program.c_str(), X_OK) != 0) continue;
    finding.present = true;
    finding.detail = program;
    break;
  }
  return finding;
}

Finding DataDirectory() {
  const std::string directory = EmbeddedDataDirectory();
  const absl::Status status = PrepareEmbeddedData(directory);
  Finding finding{"data directory", status.ok(), directory, "jobs, builds and measurements cannot be kept"};
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory, error);
  if (!error)
    absl::StrAppend(&finding.detail, ", ", FormatBytes(static_cast<double>(space.available)), " free");
  if (!status.ok()) finding.detail = std::string(status.message());
  return finding;
}

Finding ServerFinding(const Invocation& invocation, const std::string& address, DoctorReport* report) {
  Finding finding{"server", false, "", "nothing: commands run a server of their own (embedded)"};
  if (address.empty()) {
    finding.detail = "none configured";
    return finding;
  }
  finding.cost = "commands fail; start the server, or use --server embedded";
  absl::StatusOr<std::unique_ptr<Client>> client = OpenClient(invocation, {});
  absl::StatusOr<v1::ListWorkersResponse> workers =
      client.ok() ? (*client)->ListWorkers() : absl::StatusOr<v1::ListWorkersResponse>(client.status());
  if (!workers.ok()) {
    report->server_is_away = true;
    finding.detail = std::string(workers.status().message());
    return finding;
  }
  finding.present = true;
  finding.detail = absl::StrCat(address, ", ", AddWorkers(*workers, report));
  return finding;
}

// Done when something can be built and timed, failed otherwise.
ExitCode Doctor(const Invocation& invocation) {
  absl::StatusOr<std::string> address = ServerAddress(invocation);
  if (!address.ok()) return invocation.Report(address.status());
  DoctorReport report;
  LocalMachine machine = ExamineLocalMachine(/*devices=*/address->empty());
  report.findings = std::move(machine.programs);
  report.findings.push_back(Nvcc());
  report.findings.push_back(DataDirectory());
  for (std::vector<Finding>* found : {&machine.sandboxes, &machine.device_findings})
    report.findings.insert(report.findings.end(), found->begin(), found->end());
  for (v1::DeviceDescription& device : machine.devices)
    report.devices.push_back({"this machine", std::move(device)});
  report.findings.push_back(ServerFinding(invocation, *address, &report));
  std::cout << (invocation.json ? JsonText(DoctorJson(report)) : DoctorText(report, invocation.Style()));
  return report.usable() ? kDone : kFailed;
}

}  // namespace

void AddDoctorCommand(CLI::App* app, Invocation* invocation) {
  CLI::App* command =
      app->add_subcommand("doctor", "What fusion can use here, what is missing, and what that costs");
  AddCommonOptions(command, invocation);
  command->callback([=] { invocation->run = [=] { return Doctor(*invocation); }; });
}

}  // namespace fusion
