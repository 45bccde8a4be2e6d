#include "db/store/group_commit.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace fusion {
namespace {

// One transaction takes at most so many changes, so that nobody waits long for it.
constexpr size_t kMostOfGroup = 32;

}  // namespace

absl::Status GroupCommit::Run(const Change& change, Urgency urgency) {
  return RunInTurn(change, false, urgency);
}

absl::Status GroupCommit::RunBetween(const Change& work) { return RunInTurn(work, true, Urgency::kBulk); }

void GroupCommit::Waiting::Tell(Told told_now) {
  {
    std::lock_guard lock(mutex);
    news = told_now;
  }
  told.notify_one();
}

void GroupCommit::Waiting::WaitForNews() {
  std::unique_lock lock(mutex);
  told.wait(lock, [&] { return news != Told::kNothing; });
  done = news == Told::kDone;
}

absl::Status GroupCommit::RunInTurn(const Change& change, bool alone, Urgency urgency) {
  const Turn mine = std::make_shared<Waiting>(&change, alone);
  bool leads;
  {
    std::lock_guard lock(mutex_);
    (urgency == Urgency::kUrgent ? urgent_ : waiting_).push_back(mine);
    leads = !std::exchange(committing_, true);
  }
  if (!leads) mine->WaitForNews();
  // Whoever leads goes on until his own change is done: urgent ones may be before it.
  while (!mine->done) {
    const Group group = Commit();
    mine->done = std::find(group.begin(), group.end(), mine) != group.end();
    // An urgent change is the last, and its thread is told first; then the next leader is told, so that the
    // disk need not wait for the others; then the others are.
    const auto tell = [&](const Turn& waiting) {
      if (waiting != mine) waiting->Tell(Told::kDone);
    };
    tell(group.back());
    if (mine->done) PassOn();
    std::for_each(group.begin(), group.end() - 1, tell);
  }
  return std::move(mine->status);
}

void GroupCommit::PassOn() {
  Turn next;
  {
    std::lock_guard lock(mutex_);
    committing_ = !NextLine().empty();
    if (committing_) next = NextLine().front();
  }
  if (next != nullptr) next->Tell(Told::kLead);
}

GroupCommit::Waiting* GroupCommit::TakeInto(Group& group, bool* urgent) {
  std::lock_guard lock(mutex_);
  *urgent = !urgent_.empty();
  std::deque<Turn>& line = NextLine();
  if (line.empty() || line.front()->alone) return nullptr;
  group.push_back(std::move(line.front()));
  line.pop_front();
  return group.back().get();
}

size_t GroupCommit::InLine() const {
  std::lock_guard lock(mutex_);
  return urgent_.size() + waiting_.size();
}

bool GroupCommit::UrgentWaits() {
  std::lock_guard lock(mutex_);
  return !urgent_.empty();
}

GroupCommit::Group GroupCommit::Commit() {
  Group group;
  {
    std::lock_guard lock(mutex_);
    std::deque<Turn>& line = NextLine();
    if (line.front()->alone || urgent_.size() + waiting_.size() == 1) {
      group.push_back(std::move(line.front()));
      line.pop_front();
    }
  }
  if (group.empty()) {
    if (CommitTogether(group)) return group;
  } else if (group.front()->alone) {
    group.front()->status = (*group.front()->change)(*database_);
    return group;
  }
  for (const Turn& waiting : group) waiting->status = CommitAlone(*waiting->change);
  return group;
}

absl::Status GroupCommit::CommitAlone(const Change& change) {
  Transaction transaction(*database_);
  if (!transaction.status().ok()) return transaction.status();
  FUSION_RETURN_IF_ERROR(change(*database_));
  return transaction.Commit();
}

bool GroupCommit::CommitTogether(Group& group) {
  bool urgent = false;
  Transaction transaction(*database_);
  if (!transaction.status().ok()) {
    TakeInto(group, &urgent);
    return false;
  }
  // Without savepoints, for which SQLite copies every page that a change touches. A change that fails has
  // almost always changed nothing yet; if it has, the transaction is undone, and each of the group is carried
  // out by itself.
  while (group.size() < kMostOfGroup) {
    Waiting* const waiting = TakeInto(group, &urgent);
    if (waiting == nullptr) break;
    const int64_t changed = database_->total_changes();
    waiting->status = (*waiting->change)(*database_);
    // A full disk or an I/O error may have undone the whole transaction.
    if (!database_->in_transaction()) return false;
    if (!waiting->status.ok() && database_->total_changes() != changed) return false;
    if (urgent && !UrgentWaits()) break;
  }
  return transaction.Commit().ok();
}

}  // namespace fusion
