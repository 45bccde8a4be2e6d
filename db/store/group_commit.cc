#include "db/store/group_commit.h"

#include <utility>

namespace fusion {

absl::Status GroupCommit::Run(const Change& change) {
  Waiting mine{&change, absl::OkStatus()};
  std::unique_lock lock(mutex_);
  waiting_.push_back(&mine);
  finished_.wait(lock, [&] { return mine.done || !committing_; });
  if (mine.done) return std::move(mine.status);
  committing_ = true;
  const std::vector<Waiting*> group = std::exchange(waiting_, {});
  lock.unlock();
  Commit(group);
  lock.lock();
  for (Waiting* done : group) done->done = true;
  committing_ = false;
  finished_.notify_all();
  return std::move(mine.status);
}

void GroupCommit::Commit(const std::vector<Waiting*>& group) {
  if (group.size() > 1 && CommitTogether(group)) return;
  for (Waiting* waiting : group) waiting->status = CommitAlone(*waiting->change);
}

absl::Status GroupCommit::CommitAlone(const Change& change) {
  Transaction transaction(*database_);
  if (!transaction.status().ok()) return transaction.status();
  if (absl::Status status = change(*database_); !status.ok()) return status;
  return transaction.Commit();
}

bool GroupCommit::CommitTogether(const std::vector<Waiting*>& group) {
  Transaction transaction(*database_);
  if (!transaction.status().ok()) return false;
  for (Waiting* waiting : group) {
    if (!database_->Query("SAVEPOINT change").Run().ok()) return false;
    waiting->status = (*waiting->change)(*database_);
    // A full disk or an I/O error may have undone the whole transaction.
    if (!database_->in_transaction()) return false;
    if (!waiting->status.ok() && !database_->Query("ROLLBACK TO change").Run().ok()) return false;
    if (!database_->Query("RELEASE change").Run().ok()) return false;
  }
  return transaction.Commit().ok();
}

}  // namespace fusion
