// Metrics of what the process itself uses, under the names that Prometheus' own clients have for it.
#pragma once

#include "base/monitor/metrics.h"

namespace fusion {

// Adds process_resident_memory_bytes, process_virtual_memory_bytes, process_open_fds, process_max_fds,
// process_cpu_seconds_total, process_start_time_seconds, read from /proc/self at every collection, and
// fusion_build_info{program,version}. What cannot be read stays 0.
void AddProcessMetrics(const std::string& program, const std::string& version, Metrics* metrics);

}  // namespace fusion
