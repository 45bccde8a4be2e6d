// Each thread keeps the message of its last failed call.
#pragma once

#include "absl/status/status.h"

namespace fusion::tuning {

// Keeps the message for LastMessage of this thread; returns the fusion_tuner_code. The status is not OK.
int Fail(const absl::Status& status);
const char* LastMessage();

}  // namespace fusion::tuning
