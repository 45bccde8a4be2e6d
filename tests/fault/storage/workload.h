// What a server does to its store all day, in small.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "db/store/store.h"

namespace fusion {

// What the store has said is done, and so must be there whatever happens afterwards.
struct Acknowledged {
  std::vector<std::string> jobs;
  std::map<std::string, std::string> results;  // of tasks, by id
  std::map<std::string, std::string> blobs;    // by digest
  std::map<std::string, int> events;           // of jobs
};

// Round after round: a job, its tasks, claims, results, blobs, events. Ends after `rounds`, or at the first
// error, which it returns. `done` is called after everything that was acknowledged.
absl::Status RunWorkload(Store& store, int rounds, Acknowledged* acknowledged,
                         const std::function<void()>& done = nullptr);

// What of it is missing or wrong; empty: nothing.
std::string Missing(Store& store, const Acknowledged& acknowledged);

}  // namespace fusion
