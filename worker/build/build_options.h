// The options of a build that a server may ask for.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "fusion/v1/worker.pb.h"

namespace fusion {

// OK when every option of the task is one of those that change only how the source is compiled: definitions,
// levels of optimisation, language versions, and what NVRTC knows of these. InvalidArgument names the first
// other one: nothing that reads another file (-I, -include, -B, -fplugin, @file), starts a program
// (-wrapper), or writes elsewhere (-o) is among them.
absl::Status CheckBuildOptions(const v1::BuildTask& task);

}  // namespace fusion
