// GroupCommit puts changes of several threads into one transaction: a disk that takes a millisecond to make a
// commit safe would otherwise be the limit of the whole queue. Private to db/store.
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

// kUrgent: somebody waits for the change who should not notice what else goes on.
enum class Urgency { kBulk, kUrgent };

// Thread safe. A thread that finds no transaction in progress carries out the changes that wait, and changes
// that come meanwhile are the next transaction: a change that comes alone waits for nobody. An urgent change
// goes next into the transaction that is being made, which is then committed: it waits for one other change
// and for the disk, however many wait.
class GroupCommit {
 public:
  using Change = std::function<absl::Status(Database&)>;

  // Call this once, before Run. Nothing else uses the connection, and it outlives this object.
  void Open(Database* database) { database_ = database; }

  // Carries out the change; OK when it is on the disk. A change that fails is undone alone. A change may be
  // carried out twice, when its first transaction was undone.
  absl::Status Run(const Change& change, Urgency urgency = Urgency::kBulk);
  // Runs `work` with the connection between two transactions.
  absl::Status RunBetween(const Change& work);
  // Returns how many changes no transaction has taken yet.
  size_t InLine() const;

 private:
  // The thread that waits for a change is told this.
  enum class Told { kNothing, kLead, kDone };
  struct Waiting {
    Waiting(const Change* change, bool alone) : change(change), alone(alone) {}
    void Tell(Told news);
    void WaitForNews();

    const Change* const change;
    const bool alone;  // is carried out outside of transactions
    absl::Status status;
    bool done = false;  // used by the waiting thread alone
    std::mutex mutex;   // each has its own condition, so that Tell wakes one thread alone
    std::condition_variable told;
    Told news = Told::kNothing;  // guarded by mutex
  };
  // Turns are shared, because a thread that is told may go on before the telling thread has done so.
  using Turn = std::shared_ptr<Waiting>;
  using Group = std::vector<Turn>;

  absl::Status RunInTurn(const Change& change, bool alone, Urgency urgency);
  // Lets the thread that waits first lead from now on.
  void PassOn();
  // Carries out the changes that wait, in one transaction, and returns them.
  Group Commit();
  absl::Status CommitAlone(const Change& change);
  // Adds the changes that it carries out to the group. False: the transaction is gone, and nothing is
  // decided.
  bool CommitTogether(Group& group);
  // Returns the line of the next change that waits. mutex_ is held.
  std::deque<Turn>& NextLine() { return urgent_.empty() ? waiting_ : urgent_; }
  // Moves the next change, if a transaction can carry it out, to the group and returns it; else null.
  Waiting* TakeInto(Group& group, bool* urgent);
  bool UrgentWaits();

  Database* database_ = nullptr;  // used by the thread that commits
  mutable std::mutex mutex_;
  std::deque<Turn> urgent_;   // guarded by mutex_
  std::deque<Turn> waiting_;  // guarded by mutex_
  bool committing_ = false;   // guarded by mutex_
};

}  // namespace fusion
