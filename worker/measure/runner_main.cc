// fusion-runner: runs device code that nobody has vetted, as a child of a worker. Started by RunnerProcess:
// requests on stdin, replies on stdout, the activity page behind descriptor 3.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "worker/measure/activity.h"
#include "worker/measure/runner.h"

namespace {

// A runner whose worker died must not stay, not even in an endless kernel. PR_SET_PDEATHSIG would do, but it
// fires when the *thread* that started us ends, which may be long before its process.
void EndWithParent() {
  const pid_t parent = getppid();
  std::thread([parent] {
    while (getppid() == parent) std::this_thread::sleep_for(std::chrono::seconds(1));
    _exit(4);
  }).detach();
}

}  // namespace

int main() {
  if (fcntl(3, F_GETFD) < 0) {
    std::fprintf(stderr, "fusion-runner is started by fusion-worker and fusion-client, not by hand\n");
    return 2;
  }
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  fcntl(3, F_SETFD, FD_CLOEXEC);
  // Replies keep stdout to themselves: whatever kernels print goes to stderr.
  const int output = fcntl(1, F_DUPFD_CLOEXEC, 4);
  dup2(2, 1);
  absl::StatusOr<std::unique_ptr<fusion::ActivityPage>> activity = fusion::ActivityPage::Open(3);
  if (output < 0 || !activity.ok()) {
    std::fprintf(stderr, "fusion-runner: %s\n", activity.status().ToString().c_str());
    return 2;
  }
  EndWithParent();
  fusion::Runner runner(0, output, activity->get());
  const absl::Status status = runner.Serve();
  // Without destructors: after a fault the driver's calls may hang, and the process gives everything back
  // anyhow.
  _exit(absl::IsAborted(status) ? 3 : 0);
}
