// The report of a worker on a timing is made fit for those who rank by it.
#pragma once

#include "fusion/v1/worker.pb.h"
#include "server/metrics/server_metrics.h"

namespace fusion {

// Programs beyond those of the task are dropped. A measurement whose outcome the protocol does not have,
// whose statistics are no numbers of 0 or more, that says OK without a time of the kind that ranks (by the
// task's method; a median above 0, of one sample or more), or that names other binaries than those of the
// program's launches (or none, where it says OK), says WORKER_LOST and why instead: the worker is wrong, not
// the program. Each such measurement is counted in `metrics`, which may be null. Times are in seconds, as in
// v1::Statistics. Those without a low quantile come from a worker that cannot say whether they are steady:
// they count as steady.
v1::TimeResult ReportedTimes(v1::TimeResult result, const v1::TimeTask& task, ServerMetrics* metrics);

}  // namespace fusion
