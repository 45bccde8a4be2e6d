// A reset forgets what predictions are made of.
#pragma once

#include "absl/status/statusor.h"
#include "db/store/measurement_store.h"
#include "fusion/v1/admin.pb.h"

namespace fusion {

// Removes the measured times of kernels, statistics and tables of routine times of a device, or of all, from
// the store; jobs that run go on with what they have read. InvalidArgument: the request names no device, or
// one and all; NotFound: nothing is stored of the device; it names those of which there is something. Thread
// safe.
absl::StatusOr<v1::ResetModelResponse> ResetModel(const v1::ResetModelRequest& request,
                                                  MeasurementStore& store);

}  // namespace fusion
