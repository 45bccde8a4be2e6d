// Checks whether a report can be true.
#pragma once

#include "absl/status/status.h"
#include "fusion/v1/tuner.pb.h"
#include "server/tuner/parameter_space.h"

namespace fusion {

// InvalidArgument: the report is of no run, has values that are not positive and finite, statistics that
// contradict each other, or a configuration that is none of the space. Any positive value can be stored.
absl::Status CheckReport(const v1::TuningReport& report, const ParameterSpace& space);

}  // namespace fusion
