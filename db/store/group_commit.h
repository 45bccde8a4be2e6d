// Changes of several threads in one transaction: a disk that takes a millisecond to make a commit safe would
// otherwise be the limit of the whole queue. Private to db/store.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "db/store/sqlite_database.h"

namespace fusion {

// Whether somebody waits for a change who should not notice what else goes on.
enum class Urgency { kBulk, kUrgent };

// Thread safe. Whoever finds no transaction in progress carries out what has been waiting, and what comes
// meanwhile is the next transaction: a change that comes alone waits for nobody. An urgent change goes into
// the transaction that is being made, next, and that is committed then: it waits for one other change and for
// the disk, however many wait.
class GroupCommit {
 public:
  using Change = std::function<absl::Status(Database&)>;

  // The connection is used by nobody else; it outlives this object. Call once, before Run.
  void Open(Database* database) { database_ = database; }

  // Carries out the change; OK when it is on the disk. One that fails is undone alone. It may be carried out
  // twice, when the transaction of the first time was undone.
  absl::Status Run(const Change& change, Urgency urgency = Urgency::kBulk);
  // Runs `work` with the connection between two transactions.
  absl::Status RunBetween(const Change& work);

 private:
  // Of the thread that waits for a change.
  enum class Told { kNothing, kLead, kDone };
  struct Waiting {
    Waiting(const Change* change, bool alone) : change(change), alone(alone) {}
    void Tell(Told news);
    void WaitForNews();

    const Change* const change;
    const bool alone;  // not in a transaction
    absl::Status status;
    bool done = false;  // as the thread that waits knows it, which alone asks
    std::mutex mutex;   // a condition of its own: whoever is told wakes nobody else
    std::condition_variable told;
    Told news = Told::kNothing;  // guarded by mutex
  };
  // Shared, because a thread that is told may go on before the one that tells it has done so.
  using Turn = std::shared_ptr<Waiting>;
  using Group = std::vector<Turn>;

  absl::Status RunInTurn(const Change& change, bool alone, Urgency urgency);
  // Whoever waits first leads from now on.
  void PassOn();
  // Carries out what waits, in one transaction.
  Group Commit();
  absl::Status CommitAlone(const Change& change);
  // Adds what is carried out to the group. False: the transaction is gone, and nothing has been decided.
  bool CommitTogether(Group& group);
  // The line of the next one that waits. mutex_ is held.
  std::deque<Turn>& NextLine() { return urgent_.empty() ? waiting_ : urgent_; }
  // Moves the next one that can be carried out in a transaction to the group; null: none.
  Waiting* TakeInto(Group& group, bool* urgent);
  bool UrgentWaits();

  Database* database_ = nullptr;  // used by the thread that commits
  std::mutex mutex_;
  std::deque<Turn> urgent_;   // guarded by mutex_
  std::deque<Turn> waiting_;  // guarded by mutex_
  bool committing_ = false;   // guarded by mutex_
};

}  // namespace fusion
