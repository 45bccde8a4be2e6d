// What a worker says of a timing, made fit for those who rank by it.
#pragma once

#include "fusion/v1/worker.pb.h"
#include "server/metrics/server_metrics.h"

namespace fusion {

// Programs beyond those of the task are dropped. A measurement whose outcome the protocol does not have,
// whose statistics are no numbers of 0 or more, that says OK without a time of the kind that ranks (by the
// task's method; a median above 0, of one sample or more), or that names other binaries than those of the
// program's launches (or none, where it says OK), says WORKER_LOST and why instead: it is the worker that is
// wrong, not the program. Each such is counted in `metrics`, which may be null. Seconds, as in
// v1::Statistics. Times without a low quantile are of a worker that cannot say whether they are steady: they
// count as that.
v1::TimeResult ReportedTimes(v1::TimeResult result, const v1::TimeTask& task, ServerMetrics* metrics);

}  // namespace fusion
