#include "worker/build/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

extern char** environ;

namespace fusion {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

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

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const Options& options) {
  const std::string program = FindProgram(options.command.at(0));
  if (program.empty()) return absl::NotFoundError(absl::StrCat("no program ", options.command[0]));
  Pipe input, output;
  if (!output.Open() || (options.input && !input.Open()))
    return absl::InternalError(absl::StrCat("pipe: ", strerror(errno)));

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (options.input) {
    posix_spawn_file_actions_adddup2(&actions, input.ends[0], 0);
  } else {
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, output.ends[1], 1);
  if (options.merge_error) posix_spawn_file_actions_adddup2(&actions, output.ends[1], 2);
  if (options.inherited_descriptor >= 0)
    posix_spawn_file_actions_adddup2(&actions, options.inherited_descriptor, 3);
  if (!options.directory.empty()) posix_spawn_file_actions_addchdir_np(&actions, options.directory.c_str());

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigemptyset(&defaults);
  for (int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&defaults, signal);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::unique_ptr<ChildProcess> child(new ChildProcess);
  std::vector<char*> arguments = Pointers(options.command);
  std::vector<char*> environment = Pointers(options.environment);
  const int error = posix_spawn(&child->pid_, program.c_str(), &actions, &attributes, arguments.data(),
                                options.environment.empty() ? environ : environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    child->reaped_ = true;
    return absl::InternalError(absl::StrCat("cannot start ", program, ": ", strerror(error)));
  }
  child->output_ = output.Take(0);
  if (options.input) child->input_ = input.Take(1);
  return child;
}

ChildProcess::~ChildProcess() {
  Kill();
  while (!TryReap()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CloseInput();
  if (output_ >= 0) close(output_);
}

void ChildProcess::CloseInput() {
  if (input_ >= 0) close(std::exchange(input_, -1));
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
