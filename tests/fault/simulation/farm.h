// A farm in one thread, on simulated time, under faults: what happens follows from the seed alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fusion {

struct FarmPlan {
  uint64_t seed = 0;
  int workers = 5;
  int jobs = 8;
  int builds_of_job = 8;  // some are those of other jobs too
  int timings_of_job = 4;
  int faults = 200;
  double seconds_of_faults = 300;
  // For the test of the test: the server forgets who holds what, as if results were not fenced.
  bool forge_fences = false;
};

struct FarmReport {
  std::vector<std::string> violations;  // empty: all that is promised held
  int faults = 0;
  int done = 0, failed = 0, cancelled = 0;  // tasks
  int stale_results = 0;                    // that were refused
  int lost_workers = 0;
  int clock_moves = 0;  // by an hour or two, at starts of the server
  uint64_t trace = 0;   // of everything that happened, in order
};

// The folder is empty.
FarmReport RunFarm(const FarmPlan& plan, const std::string& folder);

}  // namespace fusion
