// The system calls that code of candidates, and compilers, cannot make: a seccomp filter, written as a BPF
// program by hand (docs/decisions/0034). It is in force with and without bubblewrap.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "base/sandbox/policy.h"

namespace fusion {

using FilterProgram = std::vector<sock_filter>;

// The filter of a kind. What is not allowed fails with EPERM; what nobody tries by mistake (loading kernel
// modules, rebooting) and system calls of another architecture end the process; clone3, and all calls that
// are newer than this list, do not exist (ENOSYS), so that libraries fall back to what can be judged.
//
// Runners and the NVRTC child start no processes or programs, only threads; have no sockets (kDeviceCode:
// AF_UNIX alone, for the driver); signal nobody but `own_process`; change no names, modes or clocks. The host
// compiler may start programs and signal its process group's members.
FilterProgram MakeSystemCallFilter(SandboxKind kind, int own_process);

// For all threads of the process. Only system calls: may be called between fork and exec, with a program made
// before. No new privileges must be set already. 0 or errno.
int InstallFilter(const FilterProgram& program);

}  // namespace fusion
