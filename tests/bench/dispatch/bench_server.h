// The server of the bench, a process of its own.
#pragma once

#include <string>

#include "fusion/v1/optimizer.pb.h"

namespace fusion {

constexpr int kTasksOfJob = 1000;

// A request whose id begins with "builds" has kTasksOfJob builds; any other job ends at once.
v1::SubmitRequest BenchRequest(const std::string& id);

// Serves from the folder until standard input ends. Writes its address, then "queued" once the tasks of so
// many jobs wait, each on a line; with `count` at the end each statement, how often it was carried out first.
// The exit status.
int Serve(const std::string& folder, int jobs, bool count);

}  // namespace fusion
