// Counts the processors that this process may use.
#pragma once

#include <filesystem>
#include <optional>

#include "absl/strings/string_view.h"

namespace fusion {

// Counts the processors that its threads may run on (taskset, cpuset), and not more than its control group's
// quota of processor time, rounded up (`docker run --cpus`, CPUQuota=, limits of Kubernetes).
// std::thread::hardware_concurrency counts those of the machine.
int AvailableProcessors();

// Processors by the quota of a control group and those above it, of either version; none: there is no quota.
// `groups` is the text of /proc/self/cgroup, `root` where control groups are mounted. Inside a container the
// group may be known by its path on the machine, and be mounted as the root.
std::optional<double> ProcessorQuota(absl::string_view groups, const std::filesystem::path& root);

}  // namespace fusion
