// Does in small what a server does to its store all day.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "db/store/store.h"

namespace fusion {

// Work that the store has said is done, and that must be there whatever happens afterwards.
struct Acknowledged {
  std::vector<std::string> jobs;
  std::map<std::string, std::string> results;  // of tasks, by id
  std::map<std::string, std::string> blobs;    // by digest
  std::map<std::string, int> events;           // of jobs
};

// Does the same round after round: a job, its tasks, claims, results, blobs, events. Ends after `rounds`, or
// at the first error, which it returns. `done` is called after everything that was acknowledged.
absl::Status RunWorkload(Store& store, int rounds, Acknowledged* acknowledged,
                         const std::function<void()>& done = nullptr);

// Returns what of the acknowledged work is missing or wrong; empty: nothing.
std::string Missing(Store& store, const Acknowledged& acknowledged);

}  // namespace fusion
