#include "worker/agent/local_machine.h"

#include <algorithm>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/sandbox/machine_offer.h"
#include "worker/build/builder.h"
#include "worker/build/nvrtc.h"
#include "worker/measure/runner_process.h"

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

// Asks a runner process, so that nothing of a broken driver happens in this one. Measures for about a second.
void FindDevices(LocalMachine* machine) {
  RunnerProcess runner;
  absl::StatusOr<v1::DescribeReply> described = runner.Describe(v1::TARGET_AUTO);
  Finding program{"runner", described.ok(), "measures on this machine",
                  "nothing can be timed on this machine"};
  if (!described.ok()) program.detail = std::string(described.status().message());
  machine->device_findings.push_back(program);
  Finding gpu{"CUDA device", false, "the runner did not start",
              "--target cuda needs a worker with a GPU; --target host works without"};
  if (described.ok()) {
    gpu.detail = absl::StrJoin(described->notes(), "; ");
    for (const v1::DeviceDescription& device : described->devices()) {
      machine->devices.push_back(device);
      if (device.target() != v1::CUDA) continue;
      gpu.present = true;
      gpu.detail = absl::StrCat(device.name(), ", driver ", device.driver_version());
    }
  }
  machine->device_findings.push_back(gpu);
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

}  // namespace

LocalMachine ExamineLocalMachine(bool devices) {
  LocalMachine machine;
  machine.programs = {HostCompiler(), NvrtcLibrary()};
  machine.sandboxes = {RunnerSandbox(), CompilerSandbox()};
  if (devices) FindDevices(&machine);
  return machine;
}

bool HostCodeIsConfined(std::string* why_not) {
  SandboxPolicy policy;
  policy.kind = SandboxKind::kHostCode;
  return ConfinesHostCode(policy, MachineOffer::Get(), why_not);
}

}  // namespace fusion
