// Changes of several threads in one transaction: a disk that takes a millisecond to make a commit safe would otherwise be the
// limit of the whole queue. Private to db/store.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "db/store/sqlite_database.h"

namespace fusion {

// Thread safe. Whoever finds no transaction in progress carries out what has been waiting, and what comes meanwhile is the
// next transaction: a change that comes alone waits for nobody.
class GroupCommit {
 public:
  using Change = std::function<absl::Status(Database&)>;

  // The connection is used by nobody else; it outlives this object. Call once, before Run.
  void Open(Database* database) { database_ = database; }

  // Carries out the change; OK when it is on the disk. One that fails is undone alone. It may be carried out twice, when the
  // transaction of the first time was undone.
  absl::Status Run(const Change& change);

 private:
  struct Waiting {
    const Change* change;
    absl::Status status;
    bool done = false;
  };
  void Commit(const std::vector<Waiting*>& group);
  absl::Status CommitAlone(const Change& change);
  // False: the transaction is gone, and nothing has been decided.
  bool CommitTogether(const std::vector<Waiting*>& group);

  Database* database_ = nullptr;  // used by the thread that commits
  std::mutex mutex_;
  std::condition_variable finished_;
  std::vector<Waiting*> waiting_;  // guarded by mutex_
  bool committing_ = false;        // guarded by mutex_
};

}  // namespace fusion
