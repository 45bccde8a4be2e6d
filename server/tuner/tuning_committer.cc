#include "server/tuner/tuning_committer.h"

#include <spdlog/spdlog.h>

#include <iterator>
#include <utility>

namespace fusion {
namespace {

constexpr std::chrono::milliseconds kRetry{200};
// Progress waits so long for reports with which it can be written.
constexpr std::chrono::milliseconds kProgressDelay{20};
// Other changes of the store wait behind a transaction.
constexpr size_t kMostBatches = 4096;

}  // namespace

TuningCommitter::TuningCommitter(TuningStore& store, Committed committed, TunerMetrics* metrics)
    : store_(store), committed_(std::move(committed)), metrics_(metrics), thread_([this] { Run(); }) {}

TuningCommitter::~TuningCommitter() { Stop(); }

void TuningCommitter::Add(TuningBatch batch) {
  std::lock_guard lock(mutex_);
  waiting_.batches.push_back(std::move(batch));
  ++added_;
  changed_.notify_all();
}

void TuningCommitter::SetProgress(TuningProgressUpdate update) {
  std::lock_guard lock(mutex_);
  auto [found, added] = waiting_.progress.try_emplace(update.tuning);
  TuningProgressUpdate& waiting = found->second;
  if (!added && waiting.progress.generation == update.progress.generation)
    update.convergence.insert(update.convergence.begin(), waiting.convergence.begin(),
                              waiting.convergence.end());
  update.reset |= waiting.reset;
  waiting = std::move(update);
  ++added_;
  changed_.notify_all();
}

bool TuningCommitter::Flush(std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  ++flushing_;
  changed_.notify_all();
  const bool flushed =
      changed_.wait_for(lock, limit, [this, before = added_] { return committed_to_ >= before; });
  --flushing_;
  return flushed;
}

void TuningCommitter::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void TuningCommitter::Run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !waiting_.empty() || stopping_; });
    // Nobody waits for progress alone. Reports that come meanwhile take it with them, instead of waiting
    // behind it.
    changed_.wait_for(lock, kProgressDelay,
                      [this] { return !waiting_.batches.empty() || flushing_ > 0 || stopping_; });
    if (waiting_.empty()) return;
    Group group;
    std::swap(group, waiting_);
    uint64_t to = added_;
    if (group.batches.size() > kMostBatches) {
      // Progress goes with the first part: it never says less than the reports.
      waiting_.batches.assign(std::make_move_iterator(group.batches.begin() + kMostBatches),
                              std::make_move_iterator(group.batches.end()));
      group.batches.resize(kMostBatches);
      to = committed_to_;
    }
    const bool last = stopping_;
    lock.unlock();
    Commit(std::move(group), last);
    lock.lock();
    committed_to_ = std::max(committed_to_, to);
    changed_.notify_all();
  }
}

void TuningCommitter::Commit(Group group, bool last) {
  std::vector<TuningProgressUpdate> progress;
  for (auto& [tuning, update] : group.progress) progress.push_back(std::move(update));
  for (bool failed = false;; failed = true) {
    const auto begin = std::chrono::steady_clock::now();
    const absl::Status status = store_.CommitTunings(group.batches, progress, TimeOfDay());
    if (status.ok()) {
      if (failed) spdlog::info("tuning: reports are stored again");
      if (metrics_ != nullptr)
        metrics_->commit_seconds->Observe(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
      committed_(group.batches, progress);
      return;
    }
    if (metrics_ != nullptr) metrics_->commit_failures->Add();
    if (!failed) spdlog::error("tuning: reports cannot be stored; trying again: {}", status.ToString());
    std::unique_lock lock(mutex_);
    if (last || changed_.wait_for(lock, kRetry, [this] { return stopping_; })) {
      if (last) return;  // nobody was told that they are stored, so they are sent again
      last = true;
    }
  }
}

}  // namespace fusion
