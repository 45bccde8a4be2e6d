// File access by Landlock (Linux 5.13 and later): works without privileges, namespaces and programs, also
// inside containers that forbid all of these. It cannot be taken back, and holds for all that the process
// starts.
#pragma once

#include "absl/status/statusor.h"
#include "base/sandbox/policy.h"

namespace fusion {

// Version of Landlock in this kernel; 0: none.
int LandlockVersion();

// The version from which on Landlock closes what matters for native code: from 3 on (Linux 6.2) files cannot
// be cut off by name either.
inline constexpr int kSufficientLandlockVersion = 3;

// A descriptor of the rules of a policy: reading ReadablePlaces, ReadableProcessFiles and `program`, writing
// policy.write and the open device nodes, with bubblewrap also its private /tmp; connecting nowhere, signals
// and abstract sockets within the process alone. The caller closes it. Unavailable without Landlock.
absl::StatusOr<int> LandlockRules(const SandboxPolicy& policy, const std::string& program,
                                  bool private_temporary_folder);

// Puts the calling thread under the rules: call it before there are others. Only system calls: may be called
// between fork and exec. No new privileges must be set already. 0 or errno.
int EnforceLandlockRules(int rules);

}  // namespace fusion
