// Following a job to its end, and what comes after; shared by `submit` and `jobs watch`.
#pragma once

#include <string>

#include "client/cli/invocation.h"
#include "fusion/v1/optimizer.pb.h"

namespace fusion {

struct WatchOptions {
  std::string output;  // folder for the exported rank 1; "": <data directory>/artifacts/<graph>-<job id>
  bool force = false;  // write into a folder that holds other files
  bool all = false;    // show every candidate
  bool worker_starts = false;  // a worker in this process is measuring its devices
};

// Shows progress on stderr until the job ends; then writes the exported folder of rank 1 and prints the
// result. Interrupted, it prints how to watch the job again.
ExitCode WatchToEnd(const Invocation& invocation, Client* client, const std::string& job,
                    const WatchOptions& options);

// "jobs/1a2b" from "1a2b" or "jobs/1a2b".
std::string JobName(const std::string& given);

}  // namespace fusion
