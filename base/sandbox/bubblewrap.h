// Starts a program with bubblewrap (bwrap): in user, process, network, IPC, host name and cgroup namespaces
// of its own, where it sees only the folders of its policy.
#pragma once

#include <string>
#include <vector>

#include "base/sandbox/policy.h"

namespace fusion {

// Size of the private /tmp, which is in memory.
inline constexpr long kPrivateFolderBytes = 64L << 20;

// Returns the command that starts `command` (program, which must be an absolute path, and arguments) by the
// policy. Bubblewrap reads a system call filter, to install last, from `filter_descriptor` unless that is -1.
// The program sees its own file, the folder lib beside its folder (libraries of a package) and the policy's
// places, all read only; policy.write; an empty root, /tmp and, unless it is a compiler, /proc of its own.
std::vector<std::string> BubblewrapCommand(const std::string& bubblewrap, const SandboxPolicy& policy,
                                           const std::vector<std::string>& command,
                                           const std::string& directory, int filter_descriptor);

}  // namespace fusion
