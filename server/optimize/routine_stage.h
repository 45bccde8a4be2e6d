// This stage finds the stored tables of routine times, and measures those that a graph lacks.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/store/measurement_store.h"
#include "fusion/v1/optimizer.pb.h"
#include "library/catalog/catalog.h"
#include "server/model/routine_tables.h"
#include "server/optimize/pipeline_context.h"
#include "server/optimize/submission.h"
#include "server/target/device_description.h"

namespace fusion {

// Returns the tables of routine times that the store has for the device. *notes says which were refused, and
// why.
absl::StatusOr<RoutineTables> StoredRoutineTables(const DeviceDescription& device, const Catalog& catalog,
                                                  MeasurementStore& store, std::vector<std::string>* notes);
// Measures the routines of the graph's element functions that are not `known`, and stores their tables. Notes
// say what could not be measured; errors are those of the dispatcher and the store.
absl::StatusOr<v1::RoutineTables> MeasureRoutines(const Submission& submission,
                                                  const DeviceDescription& device, const RoutineTables& known,
                                                  const PipelineContext& context);

}  // namespace fusion
