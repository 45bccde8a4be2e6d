// fusion-runner: runs device code that nobody has vetted, as a child of a worker. Started by RunnerProcess:
// requests on stdin, replies on stdout, the activity page behind descriptor 3; the arguments say how it
// confines itself (PolicyArguments) before it does anything else. The kernel ends it when its worker ends.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/sandbox/confine.h"
#include "base/status_macros.h"
#include "worker/measure/activity.h"
#include "worker/measure/runner.h"

namespace {

// While there is one thread, and nothing but this program and its libraries is loaded.
absl::Status Confine(const std::vector<std::string>& arguments) {
  FUSION_ASSIGN_OR_RETURN(fusion::SandboxPolicy policy, fusion::PolicyFromArguments(arguments));
  std::error_code error;
  return fusion::ConfineThisProcess(policy, std::filesystem::read_symlink("/proc/self/exe", error).string());
}

}  // namespace

int main(int argc, char** argv) {
  if (fcntl(3, F_GETFD) < 0) {
    std::fprintf(stderr, "fusion-runner is started by fusion-worker and fusion-client, not by hand\n");
    return 2;
  }
  if (absl::Status confined = Confine(std::vector<std::string>(argv + 1, argv + argc)); !confined.ok()) {
    std::fprintf(stderr, "fusion-runner: not confined: %s\n", std::string(confined.message()).c_str());
    return 5;
  }
  fcntl(3, F_SETFD, FD_CLOEXEC);
  // Replies keep stdout to themselves: whatever kernels print goes to stderr.
  const int output = fcntl(1, F_DUPFD_CLOEXEC, 4);
  dup2(2, 1);
  absl::StatusOr<std::unique_ptr<fusion::ActivityPage>> activity = fusion::ActivityPage::Open(3);
  if (output < 0 || !activity.ok()) {
    std::fprintf(stderr, "fusion-runner: %s\n", activity.status().ToString().c_str());
    return 2;
  }
  fusion::Runner runner(0, output, activity->get());
  const absl::Status status = runner.Serve();
  // Without destructors: after a fault the driver's calls may hang, and the process gives everything back
  // anyhow.
  _exit(absl::IsAborted(status) ? 3 : 0);
}
