// CUDA C++ to cubin, in process, with NVRTC. Needs no GPU and no driver.
#pragma once

#include "worker/build/builder.h"
#include "worker/build/nvrtc.h"

namespace fusion {

class NvrtcBuilder : public Builder {
 public:
  // NotFound when NVRTC is not on this machine.
  static absl::StatusOr<std::unique_ptr<Builder>> Create();
  // With a library that is loaded; it outlives the builder.
  explicit NvrtcBuilder(const Nvrtc* nvrtc) : nvrtc_(nvrtc) {}

  // The arch "sm_90" becomes --gpu-architecture=sm_90, then --std=c++17 and the task's options. For an
  // architecture that this NVRTC does not know the nearest older one is taken, and the log begins with a
  // warning: its cubin, which runs on later devices of the same major version, else its PTX (ended by a
  // zero), which the driver translates. From NVRTC 12.9 the deadline is noticed between the phases of a
  // compilation, before at its end; an endless instantiation of templates ends only with the process
  // (IsolatedBuilder, worker/measure/runner_process.h).
  BuildOutput Build(const v1::BuildTask& task, std::stop_token stop) override;
  std::string CompilerVersion() const override;

 private:
  const Nvrtc* const nvrtc_;
};

}  // namespace fusion
