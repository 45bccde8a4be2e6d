#include "worker/build/builder.h"

#include "worker/build/host_builder.h"
#include "worker/build/nvrtc_builder.h"

namespace fusion {

absl::StatusOr<std::unique_ptr<Builder>> MakeBuilder(v1::Target target) {
  if (target == v1::CUDA) return NvrtcBuilder::Create();
  if (target == v1::HOST) return HostBuilder::Create();
  return absl::InvalidArgumentError("a build needs a target: CUDA or HOST");
}

std::string CompilerVersion(v1::Target target) {
  absl::StatusOr<std::unique_ptr<Builder>> builder = MakeBuilder(target);
  return builder.ok() ? (*builder)->CompilerVersion() : "";
}

}  // namespace fusion
