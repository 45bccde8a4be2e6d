// What a worker says of a timing, made fit for those who rank by it.
#pragma once

#include "fusion/v1/worker.pb.h"

namespace fusion {

// Programs beyond the `programs` that the task has are dropped. A measurement whose outcome the protocol does
// not have, or whose statistics are no numbers of 0 or more, says WORKER_LOST and why instead: it is the
// worker that is wrong, not the program. Seconds, as in v1::Statistics.
v1::TimeResult ReportedTimes(v1::TimeResult result, int programs);

}  // namespace fusion
