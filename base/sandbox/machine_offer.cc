#include "base/sandbox/machine_offer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/sandbox/bubblewrap.h"
#include "base/sandbox/file_access.h"
#include "base/sandbox/spawn.h"

namespace fusion {
namespace {

constexpr int kTrialMilliseconds = 5000;

std::string InPath(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (absl::string_view folder : absl::StrSplit(path != nullptr ? path : "/usr/bin:/bin", ':')) {
    std::string candidate = absl::StrCat(folder, "/", name);
    if (!folder.empty() && access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

// Runs a program in bubblewrap by a real policy. "" when that works, else what was said.
std::string Trial(const std::string& bubblewrap, const std::string& program) {
  SandboxPolicy policy;
  policy.kind = SandboxKind::kHostCode;
  SpawnRequest request;
  request.command = BubblewrapCommand(bubblewrap, policy, {program}, "/", -1);
  request.environment = {"LANG=C.UTF-8"};
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
  request.output = request.error = ends[1];
  const absl::StatusOr<pid_t> child = Spawn(request);
  close(ends[1]);
  std::string said = child.ok() ? "" : std::string(child.status().message());
  if (child.ok()) {
    pollfd waiting{ends[0], POLLIN, 0};
    char text[512];
    ssize_t count = 0;
    bool late = false;
    while (!(late = poll(&waiting, 1, kTrialMilliseconds) == 0) &&
           (count = read(ends[0], text, sizeof text)) > 0 && said.size() < 4096)
      said.append(text, count);
    if (late) kill(*child, SIGKILL);
    int status = 0;
    while (waitpid(*child, &status, 0) < 0 && errno == EINTR) {
    }
    if (late) said = "it did not end";
    if (status == 0) said.clear();
    if (status != 0 && said.empty()) said = absl::StrCat("it ended with status ", status);
  }
  close(ends[0]);
  return said.substr(0, said.find('\n'));
}

MachineOffer Probe() {
  MachineOffer offer;
  offer.filter = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
  offer.landlock = LandlockVersion();
  const char* wanted = std::getenv("FUSION_BWRAP");
  std::string program = wanted != nullptr && *wanted != '\0' ? wanted : InPath("bwrap");
  const std::string harmless = InPath("true");
  if (program == "none") {
    offer.bubblewrap_missing = "left out by FUSION_BWRAP=none";
  } else if (program.empty()) {
    offer.bubblewrap_missing = "bwrap is not installed (package bubblewrap)";
  } else if (offer.bubblewrap_missing = Trial(program, harmless.empty() ? "/bin/true" : harmless);
             offer.bubblewrap_missing.empty()) {
    offer.bubblewrap = program;
  }
  return offer;
}

}  // namespace

const MachineOffer& MachineOffer::Get() {
  static const auto* offer = new MachineOffer(Probe());
  return *offer;
}

SandboxPolicy ActualPolicy(SandboxPolicy policy, const MachineOffer& offer) {
  policy.use_bubblewrap = policy.use_bubblewrap && !offer.bubblewrap.empty();
  return policy;
}

std::string ConfinementText(const SandboxPolicy& policy, const MachineOffer& offer) {
  std::vector<std::string> layers;
  const bool bubblewrap = ActualPolicy(policy, offer).use_bubblewrap;
  // Compilers of the host are not ours and cannot confine themselves once they are in bubblewrap.
  const bool landlock = policy.kind != SandboxKind::kHostCompiler || !bubblewrap;
  if (bubblewrap) layers.push_back("bubblewrap");
  if (offer.filter) layers.push_back("seccomp");
  if (offer.landlock > 0 && policy.use_landlock && landlock) layers.push_back("Landlock");
  layers.push_back("limits");
  return absl::StrJoin(layers, ", ");
}

bool ConfinesHostCode(const SandboxPolicy& policy, const MachineOffer& offer, std::string* why_not) {
  if (offer.filter && policy.use_bubblewrap && !offer.bubblewrap.empty()) return true;
  if (offer.filter && policy.use_landlock && offer.landlock >= kSufficientLandlockVersion) return true;
  if (why_not != nullptr) {
    *why_not = offer.filter ? absl::StrCat("no bubblewrap (", offer.bubblewrap_missing, ") and ",
                                           offer.landlock == 0 ? "no Landlock" : "too old a Landlock",
                                           " (Linux 6.2 has it)")
                            : "no seccomp in this kernel";
  }
  return false;
}

}  // namespace fusion
