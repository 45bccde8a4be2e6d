// Limits of what a process may use up. 0 means no limit.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "base/sandbox/policy.h"

namespace fusion {

struct ResourceLimits {
  uint64_t address_space_bytes = 0;
  uint64_t data_bytes = 0;  // private memory that can be written; not limited under sanitizers, which reserve
                            // terabytes
  uint64_t file_bytes = 0;  // of one file, in memory or not
  uint64_t descriptors = 0;
  uint64_t processor_seconds = 0;
};

// Bytes of memory of this machine; 0 where it does not say.
uint64_t MachineBytes();

// The limits for a kind of process on this machine. CUDA reserves address space without measure and shares
// memory with the driver, so that neither limit of memory can be used for kDeviceCode, where candidates have
// no code on the host. A runner has no limit of processor time: it serves many tasks, each with deadlines.
ResourceLimits LimitsOf(SandboxKind kind);

// Sets the limits for the calling process and what it starts; never raises one. Forbids core dumps. It makes
// system calls only, so it may be called between fork and exec.
void ApplyLimits(const ResourceLimits& limits);

// Limits the threads of the calling process' user namespace, where that counts them alone (Linux 5.14,
// bubblewrap, not root); harmless elsewhere.
void LimitThreadsOfNamespace();

}  // namespace fusion
