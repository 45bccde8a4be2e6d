#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/doctor_report.h"
#include "client/cli/invocation.h"
#include "client/cli/number_format.h"
#include "server/service/data_directory.h"
#include "worker/build/builder.h"
#include "worker/build/nvrtc.h"
#include "worker/measure/runner_process.h"
#include "worker/sandbox/machine_offer.h"

namespace fusion {
namespace {

Finding HostCompiler() {
  const std::string version = CompilerVersion(v1::HOST);
  Finding finding{"host compiler", !version.empty(), version,
                  "--target host cannot be built here; install g++, or set CXX"};
  if (version.empty()) finding.detail = "neither $CXX nor g++, c++ or clang++ in PATH";
  return finding;
}

Finding NvrtcLibrary() {
  absl::StatusOr<const Nvrtc*> nvrtc = Nvrtc::Load();
  Finding finding{"NVRTC", nvrtc.ok(), "",
                  "CUDA code cannot be built here; install the CUDA Toolkit, or set FUSION_NVRTC_LIBRARY"};
  finding.detail = nvrtc.ok() ? absl::StrCat((*nvrtc)->major, ".", (*nvrtc)->minor, ", ", (*nvrtc)->path)
                              : std::string(nvrtc.status().message());
  return finding;
}

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

// Asks a runner process, so that nothing of a broken driver happens in this one. Measures for about a second.
void FindDevices(DoctorReport* report) {
  RunnerProcess runner;
  absl::StatusOr<v1::DescribeReply> described = runner.Describe(v1::TARGET_AUTO);
  Finding program{"runner", described.ok(), "measures on this machine",
                  "nothing can be timed on this machine"};
  if (!described.ok()) program.detail = std::string(described.status().message());
  report->findings.push_back(program);
  Finding gpu{"CUDA device", false, "the runner did not start",
              "--target cuda needs a worker with a GPU; --target host works without"};
  if (described.ok()) {
    gpu.detail = absl::StrJoin(described->notes(), "; ");
    for (const v1::DeviceDescription& device : described->devices()) {
      report->devices.push_back({"this machine", device});
      if (device.target() != v1::CUDA) continue;
      gpu.present = true;
      gpu.detail = absl::StrCat(device.name(), ", driver ", device.driver_version());
    }
  }
  report->findings.push_back(gpu);
}

Finding DataDirectory() {
  const std::string directory = DefaultDataDirectory();
  absl::Status status = PrepareDataDirectory(directory);
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

Finding RunnerSandbox() {
  const MachineOffer& offer = MachineOffer::Get();
  SandboxPolicy policy;
  policy.kind = SandboxKind::kHostCode;
  Finding finding{"sandbox of runners", true, ConfinementText(policy, offer),
                  "fusion-worker does not offer this host as a device (--allow-unconfined-host-code does)"};
  std::string why_not;
  finding.present = ConfinesHostCode(policy, offer, &why_not);
  if (!finding.present) finding.detail = absl::StrCat(why_not, "; in force: ", finding.detail);
  if (finding.present && offer.bubblewrap.empty())
    absl::StrAppend(&finding.detail, "; no bubblewrap: ", offer.bubblewrap_missing);
  return finding;
}

// In force for the compilers that are here.
Finding CompilerSandbox() {
  Finding finding{"sandbox of compilers", false, "no compiler", "sources may read what the worker can read"};
  std::vector<std::string> confinements;
  if (absl::StatusOr<std::unique_ptr<Builder>> host = MakeBuilder(v1::HOST); host.ok())
    confinements.push_back(absl::StrCat("host: ", (*host)->Confinement()));
  if (absl::StatusOr<std::unique_ptr<Builder>> nvrtc = IsolatedBuilder::Create(v1::CUDA); nvrtc.ok())
    confinements.push_back(absl::StrCat("NVRTC: ", (*nvrtc)->Confinement()));
  if (confinements.empty()) return finding;
  finding.detail = absl::StrJoin(confinements, "; ");
  finding.present = std::all_of(confinements.begin(), confinements.end(), [](const std::string& text) {
    return absl::StrContains(text, "bubblewrap") || absl::StrContains(text, "Landlock");
  });
  return finding;
}

// Done when something can be built and timed, failed otherwise.
ExitCode Doctor(const Invocation& invocation) {
  absl::StatusOr<std::string> address = ServerAddress(invocation);
  if (!address.ok()) return invocation.Report(address.status());
  DoctorReport report;
  report.findings = {HostCompiler(),  NvrtcLibrary(),  Nvcc(),
                     DataDirectory(), RunnerSandbox(), CompilerSandbox()};
  if (address->empty()) FindDevices(&report);
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
