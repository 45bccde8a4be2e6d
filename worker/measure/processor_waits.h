// Tells how long threads of this process wait for a processor that other work has.
#pragma once

#include <filesystem>

namespace fusion {

// Seconds that all threads of this process together could run and did not, since each began (proc(5),
// task/TID/schedstat). 0 where the system does not say. `root`: where /proc is found.
double ProcessorWaitSeconds(const std::filesystem::path& root = "/");

}  // namespace fusion
