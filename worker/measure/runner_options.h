// Says how a runner is started: where its program is, what it knows of the environment, what it may read.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "base/sandbox/child_process.h"
#include "base/sandbox/policy.h"

namespace fusion {

// Options for a runner with a pipe to it, without the activity page. The program is looked for as
// RunnerProcess says; NotFound when there is none. NVRTC's folder is added to what the policy reads where it
// is needed, and the runner of one GPU is told that there is no other (CUDA_VISIBLE_DEVICES).
absl::StatusOr<ChildProcess::Options> RunnerOptions(const std::string& program, const SandboxPolicy& policy);

}  // namespace fusion
