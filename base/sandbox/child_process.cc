#include "base/sandbox/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/sandbox/machine_offer.h"
#include "base/sandbox/spawn.h"
#include "base/status_macros.h"

extern char** environ;

namespace fusion {
namespace {

constexpr int kYieldingPriority = 10;

// A pipe whose ends are closed unless taken.
struct Pipe {
  int ends[2] = {-1, -1};
  ~Pipe() {
    for (int end : ends)
      if (end >= 0) close(end);
  }
  bool Open() { return pipe2(ends, O_CLOEXEC) == 0; }
  int Take(int i) { return std::exchange(ends[i], -1); }
};

// Programs in bubblewrap end when the kernel has ended their process namespace, a moment after bubblewrap:
// until then they may hold a GPU's memory.
void WaitForEndOfOutput(int output) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  char ignored[4096];
  while (std::chrono::steady_clock::now() < deadline) {
    pollfd waiting{output, POLLIN, 0};
    if (poll(&waiting, 1, 100) > 0 && read(output, ignored, sizeof ignored) <= 0) return;
  }
}

}  // namespace

std::string ExitStatus::ToString() const {
  if (signal != 0) return absl::StrCat("killed by signal ", signal, " (", strsignal(signal), ")");
  return absl::StrCat("exited with code ", code);
}

std::string FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  for (absl::string_view folder : absl::StrSplit(path != nullptr ? path : "/usr/bin:/bin", ':')) {
    std::string candidate = absl::StrCat(folder.empty() ? "." : folder, "/", name);
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return "";
}

std::string FindOwnProgram(const std::string& name) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) {
    for (const std::filesystem::path& folder : {self.parent_path(), self.parent_path().parent_path() / "bin"})
      if (std::string found = FindProgram((folder / name).string()); !found.empty()) return found;
  }
  return FindProgram(name);
}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const Options& options) {
  // Writing to a child that has died is an error here, not the end of this process.
  static const bool ignored = signal(SIGPIPE, SIG_IGN) != SIG_ERR;
  (void)ignored;
  const std::string program = FindProgram(options.command.at(0));
  if (program.empty()) return absl::NotFoundError(absl::StrCat("no program ", options.command[0]));
  Pipe input, output;
  // Whoever writes to it may give a child up that does not read.
  if (!output.Open() || (options.input && (!input.Open() || fcntl(input.ends[1], F_SETFL, O_NONBLOCK) != 0)))
    return absl::InternalError(absl::StrCat("pipe: ", strerror(errno)));

  SpawnRequest request;
  request.command = options.command;
  request.command[0] = program;
  request.environment = options.environment;
  if (request.environment.empty())
    for (char** variable = environ; *variable != nullptr; ++variable)
      request.environment.push_back(*variable);
  request.directory = options.directory;
  request.input = input.ends[0];
  request.output = output.ends[1];
  if (options.merge_error) request.error = output.ends[1];
  request.inherited = options.inherited_descriptor;
  request.policy = options.policy;
  request.limits = options.limits;
  FUSION_ASSIGN_OR_RETURN(const pid_t pid, Spawn(request));
  std::unique_ptr<ChildProcess> child(new ChildProcess);
  child->pid_ = pid;
  child->wrapped_ =
      options.policy.has_value() && ActualPolicy(*options.policy, MachineOffer::Get()).use_bubblewrap;
  child->output_ = output.Take(0);
  if (options.input) child->input_ = input.Take(1);
  return child;
}

ChildProcess::~ChildProcess() {
  Kill();
  while (!TryReap()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CloseInput();
  if (wrapped_) WaitForEndOfOutput(output_);
  if (output_ >= 0) close(output_);
}

void ChildProcess::CloseInput() {
  if (input_ >= 0) close(std::exchange(input_, -1));
}

void ChildProcess::Yield() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(pid_), kYieldingPriority);
  // Where the kernel shares the processors by sessions (CONFIG_SCHED_AUTOGROUP), that counts inside of one.
  const int group = open(absl::StrCat("/proc/", pid_, "/autogroup").c_str(), O_WRONLY | O_CLOEXEC);
  if (group < 0) return;
  const std::string priority = absl::StrCat(kYieldingPriority);
  if (write(group, priority.data(), priority.size()) < 0) {
  }
  close(group);
}

void ChildProcess::Kill() {
  // The leader stays a zombie until it is reaped, so its number cannot have been given to another group
  // before that.
  if (!reaped_) kill(-pid_, SIGKILL);
}

std::optional<ExitStatus> ChildProcess::TryReap() {
  if (reaped_) return status_;
  siginfo_t info{};
  // Look before reaping: descendants of a leader that ended by itself must go too, while the group number is
  // still ours.
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0)
    return std::nullopt;
  kill(-pid_, SIGKILL);
  int status = 0;
  pid_t reaped;
  while ((reaped = waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
  }
  reaped_ = true;
  if (reaped == pid_) {
    if (WIFSIGNALED(status)) status_.signal = WTERMSIG(status);
    if (WIFEXITED(status)) status_.code = WEXITSTATUS(status);
    // Bubblewrap tells signals as shells do.
    if (wrapped_ && status_.code > 128 && status_.code < 128 + NSIG)
      status_.signal = std::exchange(status_.code, 0) - 128;
  }
  return status_;
}

std::optional<ExitStatus> ChildProcess::Wait(MonotonicTime deadline) {
  while (true) {
    if (std::optional<ExitStatus> status = TryReap()) return status;
    if (std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace fusion
