// Routines are timed by programs that workers build and time.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/model.pb.h"
#include "server/optimize/optimize_pipeline.h"
#include "server/skeletons/element/routine_times.h"
#include "server/target/device_description.h"

namespace fusion {

struct MeasuredRoutines {
  std::vector<v1::RoutineTable> tables;  // names and points alone
  int known = 0;                         // routines that were left out
};

// Measures the routines of the sources but those that are `known`; blocks. Notes say what could not be
// measured. Errors are those of the dispatcher.
absl::StatusOr<MeasuredRoutines> MeasureRoutineSources(const std::vector<RoutineSource>& sources,
                                                       const DeviceDescription& device,
                                                       const RoutineTables& known,
                                                       const PipelineContext& context,
                                                       std::vector<std::string>* notes);

}  // namespace fusion
