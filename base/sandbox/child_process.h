// A child process in a process group of its own, with pipes to it, that can be waited for until a deadline
// and killed with all its descendants; it has no other descriptors, and ends with this process. Not thread
// safe, except Kill, which any thread may call.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/sandbox/policy.h"
#include "base/sandbox/resource_limits.h"

namespace fusion {

using MonotonicTime = std::chrono::steady_clock::time_point;

// Says how a process ended.
struct ExitStatus {
  int code = 0;    // of exit()
  int signal = 0;  // when ended by a signal, else 0
  bool ok() const { return code == 0 && signal == 0; }
  std::string ToString() const;  // "exited with code 3", "killed by signal 11 (Segmentation fault)"
};

class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> command;      // program (an absolute path, or searched in PATH) and arguments
    std::vector<std::string> environment;  // "NAME=value"; empty: that of this process
    std::string directory;                 // working directory; empty: that of this process
    bool input = false;                    // a pipe to its stdin (else /dev/null)
    bool merge_error = false;              // stderr goes into the same pipe as stdout (else it is inherited)
    int inherited_descriptor = -1;         // appears as descriptor 3 in the child; stays open here
    std::optional<SandboxPolicy> policy;   // what confines it (base/sandbox/spawn.h)
    std::optional<ResourceLimits> limits;  // without a policy: these alone
  };

  // NotFound when there is no such program; Internal when the system refuses, or the policy cannot be kept.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const Options& options);
  // Kills the group and reaps the child; what ran in bubblewrap has ended too (or 5 s have passed).
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  int input() const { return input_; }    // -1 without a pipe; writes to it do not block (O_NONBLOCK)
  int output() const { return output_; }  // reading end of its stdout
  void CloseInput();

  // From now on the process leaves the processors to others that want them.
  void Yield();
  // Ends the process and everything that it started. Harmless when it has ended.
  void Kill();
  // Returns how the process ended, or nothing when it still runs at the deadline.
  std::optional<ExitStatus> Wait(MonotonicTime deadline);

 private:
  ChildProcess() = default;
  std::optional<ExitStatus> TryReap();
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  std::atomic<bool> reaped_{false};
  bool wrapped_ = false;  // in bubblewrap: pid_ is its process
  ExitStatus status_;
};

// The absolute path of a program as the shell would find it, or "".
std::string FindProgram(const std::string& name);

// Finds a program of ours beside this executable, in ../bin beside it (for tests), or in PATH; else "".
std::string FindOwnProgram(const std::string& name);

}  // namespace fusion
