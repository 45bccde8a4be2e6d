#include "base/sandbox/spawn.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sandbox/bubblewrap.h"
#include "base/sandbox/file_access.h"
#include "base/sandbox/machine_offer.h"
#include "base/sandbox/privileges.h"
#include "base/sandbox/resource_limits.h"
#include "base/sandbox/system_call_filter.h"
#include "base/status_macros.h"

namespace fusion {
namespace {

constexpr int kFilterDescriptor = 4;  // of bubblewrap, which closes it

// A thread that lives as long as the process: a parent's death is noticed when the *thread* that forked ends.
class SpawningThread {
 public:
  static SpawningThread& Get() {
    static auto* thread = new SpawningThread;
    return *thread;
  }
  pid_t Run(std::function<pid_t()> work) {
    std::packaged_task<pid_t()> task(std::move(work));
    std::future<pid_t> result = task.get_future();
    {
      std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    ready_.notify_one();
    return result.get();
  }

 private:
  SpawningThread() {
    std::thread([this] {
      while (true) {
        std::unique_lock lock(mutex_);
        ready_.wait(lock, [this] { return !tasks_.empty(); });
        std::packaged_task<pid_t()> task = std::move(tasks_.front());
        tasks_.pop_front();
        lock.unlock();
        task();
      }
    }).detach();
  }
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::packaged_task<pid_t()>> tasks_;  // guarded by mutex_
};

struct Descriptor {
  int number = -1;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
};

// All that the child needs, made before the fork: behind it only system calls are allowed.
struct Plan {
  std::vector<char*> arguments, environment;
  const char* directory = nullptr;  // null: stays
  int sources[5] = {-1, -1, -1, -1, -1};
  bool limited = false, reduced = false, yields = false;
  ResourceLimits limits;
  int landlock_rules = -1;
  const FilterProgram* filter = nullptr;
  int failure_pipe = -1;
  pid_t parent = 0;
};

struct Failure {
  int error = 0;
  char step[24] = {};
};

[[noreturn]] void Fail(const Plan& plan, const char* step, int error) {
  Failure failure;
  failure.error = error;
  std::strncpy(failure.step, step, sizeof failure.step - 1);
  if (write(plan.failure_pipe, &failure, sizeof failure) < 0) _exit(126);
  _exit(127);
}

// To what measures beside it. Sessions share the processors by groups where the kernel makes one of each
// (CONFIG_SCHED_AUTOGROUP).
void Yield() {
  if (getpriority(PRIO_PROCESS, 0) < 10) setpriority(PRIO_PROCESS, 0, 10);
  const int group = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
  if (group < 0) return;
  if (write(group, "10", 2) < 0) {
  }
  close(group);
}

// Takes the plan itself: a copy would allocate, and so wait for ever for a lock that another thread of the
// parent had.
[[noreturn]] void RunChild(Plan& plan) {
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != plan.parent) _exit(127);  // it died before that
  setsid();                                  // its own group, and no terminal into which it could type
  if (plan.yields) Yield();
  // Out of the way of the numbers that they will have.
  for (int& source : plan.sources)
    if (source >= 0 && (source = fcntl(source, F_DUPFD_CLOEXEC, 16)) < 0) Fail(plan, "descriptors", errno);
  plan.failure_pipe = fcntl(plan.failure_pipe, F_DUPFD_CLOEXEC, 16);
  if (plan.landlock_rules >= 0) plan.landlock_rules = fcntl(plan.landlock_rules, F_DUPFD_CLOEXEC, 16);
  int last = 2;
  for (int target = 0; target < 5; ++target) {
    if (plan.sources[target] < 0) continue;
    if (dup2(plan.sources[target], target) < 0) Fail(plan, "descriptors", errno);
    last = std::max(last, target);
  }
  for (int target = 3; target <= last; ++target)
    if (plan.sources[target] < 0) close(target);
  if (syscall(SYS_close_range, last + 1, ~0u, CLOSE_RANGE_CLOEXEC) != 0)
    for (int i = last + 1; i < 4096; ++i) fcntl(i, F_SETFD, FD_CLOEXEC);
  if (plan.directory != nullptr && chdir(plan.directory) != 0) Fail(plan, "changing the folder", errno);
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) sigaction(signal, &standard, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (plan.limited) {
    ApplyLimits(plan.limits);
    VolunteerForOutOfMemory();
  }
  if (plan.reduced) {
    if (const int error = DropPrivileges(); error != 0) Fail(plan, "dropping privileges", error);
  }
  if (plan.landlock_rules >= 0) {
    if (const int error = EnforceLandlockRules(plan.landlock_rules); error != 0)
      Fail(plan, "Landlock", error);
  }
  if (plan.filter != nullptr) {
    if (const int error = InstallFilter(*plan.filter); error != 0) Fail(plan, "seccomp", error);
  }
  execve(plan.arguments[0], plan.arguments.data(), plan.environment.data());
  Fail(plan, "starting it", errno);
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// The filter where bubblewrap reads it.
int FilterFile(const FilterProgram& program) {
  const int file = memfd_create("fusion-filter", MFD_CLOEXEC);
  const ssize_t bytes = static_cast<ssize_t>(program.size() * sizeof(sock_filter));
  if (file >= 0 && (write(file, program.data(), bytes) != bytes || lseek(file, 0, SEEK_SET) != 0)) {
    close(file);
    return -1;
  }
  return file;
}

}  // namespace

absl::StatusOr<pid_t> Spawn(const SpawnRequest& request) {
  std::vector<std::string> command = request.command;
  const std::string directory =
      request.directory.empty() && request.policy.has_value() ? "/" : request.directory;
  Plan plan;
  plan.directory = directory.empty() ? nullptr : directory.c_str();
  plan.parent = getpid();
  plan.sources[1] = request.output;
  plan.sources[2] = request.error;
  plan.sources[3] = request.inherited;

  Descriptor nothing, rules, filter_file, failure_read, failure_write;
  if (nothing.number = open("/dev/null", O_RDWR | O_CLOEXEC); nothing.number < 0)
    return absl::InternalError(absl::StrCat("/dev/null: ", std::strerror(errno)));
  plan.sources[0] = request.input >= 0 ? request.input : nothing.number;
  if (request.output < 0) plan.sources[1] = nothing.number;

  FilterProgram filter;
  if (request.limits.has_value()) {
    plan.limited = true;
    plan.limits = *request.limits;
  }
  if (request.policy.has_value()) {
    const SandboxPolicy& policy = *request.policy;
    const MachineOffer& offer = MachineOffer::Get();
    const bool bubblewrap = policy.use_bubblewrap && !offer.bubblewrap.empty();
    plan.limited = true;
    plan.limits = LimitsOf(policy.kind);
    plan.yields = policy.kind == SandboxKind::kDeviceCompiler || policy.kind == SandboxKind::kHostCompiler;
    if (policy.kind == SandboxKind::kHostCompiler && offer.filter) {
      filter = MakeSystemCallFilter(policy.kind, 0);
      if (!bubblewrap) plan.filter = &filter;
      if (bubblewrap && (plan.sources[kFilterDescriptor] = filter_file.number = FilterFile(filter)) < 0)
        return absl::InternalError(absl::StrCat("memfd_create: ", std::strerror(errno)));
    }
    if (bubblewrap) {
      plan.directory = "/";
      command = BubblewrapCommand(offer.bubblewrap, policy, command, directory,
                                  filter_file.number >= 0 ? kFilterDescriptor : -1);
    } else {
      plan.reduced = policy.kind == SandboxKind::kHostCompiler;
      if (plan.reduced && policy.use_landlock && offer.landlock > 0) {
        FUSION_ASSIGN_OR_RETURN(int made, LandlockRules(policy, command.at(0), false));
        plan.landlock_rules = rules.number = made;
      }
    }
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::InternalError(absl::StrCat("pipe: ", std::strerror(errno)));
  failure_read.number = ends[0];
  plan.failure_pipe = failure_write.number = ends[1];
  plan.arguments = Pointers(command);
  plan.environment = Pointers(request.environment);

  int error = 0;
  const pid_t child = SpawningThread::Get().Run([&]() -> pid_t {
    const pid_t forked = _Fork();
    if (forked == 0) RunChild(plan);
    if (forked < 0) error = errno;
    return forked;
  });
  if (child < 0) return absl::InternalError(absl::StrCat("fork: ", std::strerror(error)));
  close(std::exchange(failure_write.number, -1));
  Failure failure;
  ssize_t count;
  while ((count = read(failure_read.number, &failure, sizeof failure)) < 0 && errno == EINTR) {
  }
  if (count != sizeof failure) return child;
  while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return absl::InternalError(absl::StrCat("cannot start ", request.command[0], ": ", failure.step, ": ",
                                          std::strerror(failure.error)));
}

}  // namespace fusion
