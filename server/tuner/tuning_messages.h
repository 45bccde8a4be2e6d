// Stored tunings, and answers to declarations, as protocol messages.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "db/store/records.h"
#include "fusion/v1/tuner.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace fusion {

// The message lacks what is known of connected programs, and of the default.
v1::Tuning TuningMessage(const TuningRecord& record);
// Adds the configurations to the details, the best first, by the rule of RunNoise; and says of the tuning
// what follows from them: the best where one works, what the default gives, whether the best is better.
void RankConfigurations(const std::vector<TuningConfigurationRecord>& configurations,
                        const std::string& defaults, v1::TuningDetails& details);
v1::ConvergencePoint ConvergenceMessage(const TuningConvergenceRecord& record);
v1::StoredTuningReport ReportMessage(const TuningReportRecord& record);
// The message lacks the name of its tuning.
v1::Declared DeclaredMessage(uint32_t section, const absl::Status& status);

}  // namespace fusion
