// Which tasks are in whose hands, in memory: what the store has as RUNNING, without asking it at every call
// of every worker.
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

// The store stays the judge of who may do what. Each claim is noted once, and once that it has ended; threads
// may come with these in either order. Thread safe.
class ClaimBook {
 public:
  void Claimed(ClaimedTask task);
  void Ended(const std::string& worker, const std::string& id, int64_t fence);

  // What this process of the worker holds, in the order of queueing.
  std::vector<ClaimedTask> HeldBy(const std::string& worker, const std::string& instance) const;
  // The claim of this fence, if the worker has it, by whichever process; none.
  std::optional<ClaimedTask> Find(const std::string& worker, const std::string& id, int64_t fence) const;

 private:
  using Hold = std::pair<std::string, int64_t>;  // id and fence
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::map<Hold, ClaimedTask>>
      held_;                    // by worker, none empty; guarded by mutex_
  std::set<Hold> ended_first_;  // whose claims have not been noted yet; guarded by mutex_
};

}  // namespace fusion
