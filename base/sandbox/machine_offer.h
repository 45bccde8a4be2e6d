// This machine offers these means to confine a process.
#pragma once

#include <string>

#include "base/sandbox/policy.h"

namespace fusion {

struct MachineOffer {
  std::string bubblewrap;          // absolute path of a bwrap that works here; "": none
  std::string bubblewrap_missing;  // why not: "bwrap is not installed", what it said when it was tried
  bool filter = false;             // seccomp with filters
  int landlock = 0;                // its version; 0: none

  // Finds the offer once for the process, by trying: bwrap is started with the arguments of a real policy.
  // Thread safe. $FUSION_BWRAP names another bwrap; "none" leaves it out.
  static const MachineOffer& Get();
};

// The policy without bubblewrap where this machine does not offer it.
SandboxPolicy ActualPolicy(SandboxPolicy policy, const MachineOffer& offer);

// Tells people what is in force for a policy: "bubblewrap, seccomp, Landlock, limits"; "limits" at the least.
std::string ConfinementText(const SandboxPolicy& policy, const MachineOffer& offer);

// Returns whether native code of strangers may run by the policy: in bubblewrap with a system call filter, or
// under a filter and Landlock that knows all ways of writing (kSufficientLandlockVersion). See README.md for
// what the second leaves open. `why_not`, if given, says what is missing.
bool ConfinesHostCode(const SandboxPolicy& policy, const MachineOffer& offer, std::string* why_not = nullptr);

}  // namespace fusion
