#include "worker/measure/runner_options.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/sandbox/machine_offer.h"
#include "worker/build/nvrtc.h"
#include "worker/measure/host_backend.h"
#include "worker/measure/processors.h"

extern char** environ;

namespace fusion {
namespace {

constexpr char kProgramName[] = "fusion-runner";

std::string FindRunner(const std::string& wanted) {
  if (!wanted.empty()) return FindProgram(wanted);
  if (const char* named = std::getenv("FUSION_RUNNER"); named != nullptr && *named != '\0')
    return FindProgram(named);
  return FindOwnProgram(kProgramName);
}

bool UsesDriver(const SandboxPolicy& policy) { return policy.kind == SandboxKind::kDeviceCode; }
bool UsesNvrtc(const SandboxPolicy& policy) {
  return UsesDriver(policy) || policy.kind == SandboxKind::kDeviceCompiler;
}

// Returns what a runner needs to know of the environment: where libraries are and how OpenMP shall behave;
// nothing that could be a secret.
std::vector<std::string> RunnerEnvironment(const SandboxPolicy& policy) {
  std::vector<std::string> kept = {"LANG=C.UTF-8", "PATH=/usr/bin:/bin", "HOME=/tmp", "TMPDIR=/tmp",
                                   absl::StrCat(kHostUuidVariable, "=", HostUuid())};
  std::vector<const char*> prefixes = {"LD_LIBRARY_PATH=", "OMP_",  "GOMP_", "ASAN_",
                                       "UBSAN_",           "TSAN_", "LSAN_"};
  if (UsesNvrtc(policy)) prefixes.insert(prefixes.end(), {"FUSION_NVRTC_", "VIRTUAL_ENV="});
  if (UsesDriver(policy)) prefixes.insert(prefixes.end(), {"CUDA_", "NVIDIA_"});
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  // Parts of a GPU have names that the driver does not give back: whoever set them has chosen already.
  const bool choose_device = UsesDriver(policy) && !policy.device_uuid.empty() &&
                             (visible == nullptr || !absl::StrContains(visible, "MIG-"));
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (choose_device && absl::StartsWith(*variable, "CUDA_VISIBLE_DEVICES=")) continue;
    for (const char* prefix : prefixes)
      if (absl::StartsWith(*variable, prefix)) kept.push_back(*variable);
  }
  if (choose_device) kept.push_back(absl::StrCat("CUDA_VISIBLE_DEVICES=", policy.device_uuid));
  // OpenMP knows no quotas.
  if (policy.kind == SandboxKind::kHostCode && std::getenv("OMP_NUM_THREADS") == nullptr)
    kept.push_back(absl::StrCat("OMP_NUM_THREADS=", AvailableProcessors()));
  // A build takes some 8 MB in small pieces and gives them back: kept, the next one needs no new pages
  // (glibc, mallopt(3)).
  if (policy.kind == SandboxKind::kDeviceCompiler)
    kept.insert(kept.end(), {"MALLOC_TRIM_THRESHOLD_=134217728", "MALLOC_TOP_PAD_=16777216"});
  // The driver's cache of translations would be shared by all candidates, and is in the home folder.
  if (UsesDriver(policy)) kept.push_back("CUDA_CACHE_DISABLE=1");
  return kept;
}

// The driver makes its device nodes with this program, which a runner cannot start. Once, and before a runner
// looks for them; without an effect where they are there.
void MakeDriverNodes() {
  static const bool done = [] {
    if (access("/proc/driver/nvidia/version", F_OK) != 0 || access("/dev/nvidia-uvm", F_OK) == 0) return true;
    ChildProcess::Options options;
    options.command = {"nvidia-modprobe", "-c", "0", "-u"};
    options.merge_error = true;
    if (absl::StatusOr<std::unique_ptr<ChildProcess>> made = ChildProcess::Start(options); made.ok())
      (*made)->Wait(std::chrono::steady_clock::now() + std::chrono::seconds(20));
    return true;
  }();
  (void)done;
}

}  // namespace

absl::StatusOr<ChildProcess::Options> RunnerOptions(const std::string& wanted, const SandboxPolicy& policy) {
  std::error_code error;
  const std::string program = std::filesystem::absolute(FindRunner(wanted), error).string();
  if (FindRunner(wanted).empty())
    return absl::NotFoundError(
        absl::StrCat("no ", kProgramName, " beside this program or in PATH (set FUSION_RUNNER to its path)"));
  if (UsesDriver(policy)) MakeDriverNodes();
  SandboxPolicy actual = ActualPolicy(policy, MachineOffer::Get());
  ChildProcess::Options options;
  options.environment = RunnerEnvironment(policy);
  if (UsesNvrtc(policy)) {
    // NVRTC is named by its real name: links to it may lie in folders that the runner does not see.
    if (const absl::StatusOr<const Nvrtc*> nvrtc = Nvrtc::Load(); nvrtc.ok()) {
      const std::filesystem::path library = std::filesystem::canonical((*nvrtc)->path, error);
      if (!error) {
        actual.read.push_back(library.parent_path().string());
        std::erase_if(options.environment, [](const std::string& text) {
          return absl::StartsWith(text, "FUSION_NVRTC_LIBRARY=");
        });
        options.environment.push_back(absl::StrCat("FUSION_NVRTC_LIBRARY=", library.string()));
      }
    }
  }
  options.command = {std::filesystem::canonical(program, error).string()};
  if (error) options.command = {program};
  for (std::string& argument : PolicyArguments(actual)) options.command.push_back(std::move(argument));
  options.input = true;
  options.policy = std::move(actual);
  return options;
}

}  // namespace fusion
