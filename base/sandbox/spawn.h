// Starts a process, confined by a policy or not. The one place that forks.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/sandbox/policy.h"
#include "base/sandbox/resource_limits.h"

namespace fusion {

struct SpawnRequest {
  std::vector<std::string> command;      // program, an absolute path, and arguments
  std::vector<std::string> environment;  // "NAME=value", all of it
  std::string directory;                 // "": that of this process; "/" for a policy
  int input = -1;                        // becomes descriptor 0; -1: /dev/null
  int output = -1;                       // 1; -1: /dev/null
  int error = -1;                        // 2; -1: that of this process
  int inherited = -1;                    // 3; -1: none
  // In force when the program starts: the limits; bubblewrap where it is offered; for kHostCompiler also the
  // system call filter and, without bubblewrap, Landlock. A runner puts itself under both (confine.h), for
  // they would keep it from being started. Compilers run at a lower priority than what measures.
  std::optional<SandboxPolicy> policy;
  // Without a policy: limits alone, for our own code that may need too much.
  std::optional<ResourceLimits> limits;
};

// The process leads a session and a group of its own, has no other descriptors, default signals, and ends
// with this process (SIGKILL), whichever thread called. Thread safe. Internal, with what failed, when it
// cannot be started; a policy that cannot be put in force starts nothing.
absl::StatusOr<pid_t> Spawn(const SpawnRequest& request);

}  // namespace fusion
