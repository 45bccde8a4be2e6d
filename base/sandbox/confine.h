// A runner confines itself.
#pragma once

#include "absl/status/status.h"
#include "base/sandbox/policy.h"

namespace fusion {

// Gives up privileges and puts the process under Landlock, where the kernel has it, and the system call
// filter of the policy, for good. Call it before there are other threads and before code of candidates or a
// driver is loaded. `program`: its own file, which it may read. Internal when a layer that the kernel offers
// cannot be put in force: the process must not go on. `policy.write` is not looked at;
// `policy.use_bubblewrap` says that the process is in bubblewrap.
absl::Status ConfineThisProcess(const SandboxPolicy& policy, const std::string& program);

}  // namespace fusion
