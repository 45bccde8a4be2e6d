// What the last failed call of each thread says.
#pragma once

#include "absl/status/status.h"

namespace fusion::tuning {

// Keeps the message for LastMessage of this thread; the fusion_tuner_code. The status is not OK.
int Fail(const absl::Status& status);
const char* LastMessage();

}  // namespace fusion::tuning
