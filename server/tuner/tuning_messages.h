// Stored tunings, and answers to declarations, as protocol messages.
#pragma once

#include "absl/status/status.h"
#include "db/store/records.h"
#include "fusion/v1/tuner.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace fusion {

// Without what is known of connected programs.
v1::Tuning TuningMessage(const TuningRecord& record);
v1::ConfigurationStatistics StatisticsMessage(const TuningConfigurationRecord& record);
v1::ConvergencePoint ConvergenceMessage(const TuningConvergenceRecord& record);
v1::StoredTuningReport ReportMessage(const TuningReportRecord& record);
// Without the name of its tuning.
v1::Declared DeclaredMessage(uint32_t section, const absl::Status& status);

}  // namespace fusion
