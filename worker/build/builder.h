// Builders turn source into device code: CUDA C++ into a cubin with NVRTC, host C++ into a shared object with
// the system's compiler. They run nothing of what they build.
#pragma once

#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "fusion/v1/device.pb.h"
#include "fusion/v1/worker.pb.h"

namespace fusion {

// The output of a build. Builder fills result.binary, the digest, when the outcome is OK.
struct BuildOutput {
  v1::BuildResult result;
  std::string binary;  // device code; empty unless the outcome is OK

  // Without an outcome this machine failed, and result.log says at what: that must not be taken for what
  // becomes of the source.
  bool has_outcome() const { return result.outcome() != v1::OUTCOME_UNSPECIFIED; }
};

// Thread safe: several threads may build at once.
class Builder {
 public:
  virtual ~Builder() = default;

  // A source that does not compile, or with options that are not allowed (CheckBuildOptions), or that needs
  // more memory than a build may have, is COMPILE_ERROR with the compiler's log; one that takes longer than
  // the task's deadline (0: 120 s) is TIMEOUT. A build that is stopped is TIMEOUT too, its result of no use.
  // No outcome: no folder, no room on the disk, a compiler that cannot be started, that was killed, or that
  // crashed, be it at its source; one that got no more memory on a machine that has less than a build may
  // have.
  virtual BuildOutput Build(const v1::BuildTask& task, std::stop_token stop = {}) = 0;

  // The version changes whenever results may: "NVRTC 13.0", "g++ (Debian 12.2.0-14) 12.2.0".
  virtual std::string CompilerVersion() const = 0;

  // Tells people what keeps the compiler from the rest of the machine: "bubblewrap, seccomp, limits"; "none"
  // when it works in this process.
  virtual std::string Confinement() const { return "none"; }
};

inline constexpr double kDefaultBuildDeadlineSeconds = 120;

// The builder of a target (CUDA or HOST). FailedPrecondition when this machine has no compiler for it; the
// message says where one was looked for.
absl::StatusOr<std::unique_ptr<Builder>> MakeBuilder(v1::Target target);

// Version of the compiler of a target on this machine, "" when there is none.
std::string CompilerVersion(v1::Target target);

}  // namespace fusion
