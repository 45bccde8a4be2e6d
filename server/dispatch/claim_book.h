// Keeps in memory which worker holds which task: what the store has as RUNNING, so that not every call of
// every worker asks the store.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "db/store/records.h"

namespace fusion {

// A task in the hands of a worker, as it was claimed.
struct ClaimedTask {
  int64_t number = 0;  // order of queueing
  std::string id;
  int64_t fence = 0;
  std::string key;
  TaskKind kind = TaskKind::kBuild;
  std::string worker;
  std::string instance;
  Timestamp claimed{};
};
ClaimedTask ClaimedTaskOf(const TaskRecord& task);

// The store decides which worker may do what. Each claim is noted once, and so is its end; threads may note
// the two in either order. Thread safe.
class ClaimBook {
 public:
  void Claimed(ClaimedTask task);
  void Ended(const std::string& worker, const std::string& id, int64_t fence);

  // Returns the tasks that this process of the worker holds, in the order of queueing.
  std::vector<ClaimedTask> HeldBy(const std::string& worker, const std::string& instance) const;
  // Returns the claim of this fence if any process of the worker has it, else none.
  std::optional<ClaimedTask> Find(const std::string& worker, const std::string& id, int64_t fence) const;

 private:
  using Hold = std::pair<std::string, int64_t>;  // id and fence
  mutable std::mutex mutex_;
  // The tasks by worker, none empty; guarded by mutex_.
  std::unordered_map<std::string, std::map<Hold, ClaimedTask>> held_;
  std::set<Hold> ended_first_;  // their claims have not been noted yet; guarded by mutex_
};

}  // namespace fusion
