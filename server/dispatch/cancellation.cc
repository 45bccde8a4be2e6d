#include "server/dispatch/cancellation.h"

#include <map>
#include <mutex>
#include <utility>

namespace fusion {

struct CancellationToken::State {
  std::mutex mutex;
  bool cancelled = false;                              // guarded by mutex
  int64_t next_number = 0;                             // guarded by mutex
  std::map<int64_t, std::function<void()>> callbacks;  // guarded by mutex; run under it
};

struct CancellationToken::Registration::Entry {
  std::shared_ptr<State> state;
  int64_t number;
};

CancellationToken::CancellationToken() : state_(std::make_shared<State>()) {}

void CancellationToken::Cancel() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->cancelled) return;
  state_->cancelled = true;
  for (const auto& [number, wake] : state_->callbacks) wake();
}

bool CancellationToken::cancelled() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->cancelled;
}

CancellationToken::Registration CancellationToken::OnCancel(std::function<void()> wake) const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->cancelled) wake();
  const int64_t number = state_->next_number++;
  state_->callbacks.emplace(number, std::move(wake));
  return Registration(std::make_unique<Registration::Entry>(Registration::Entry{state_, number}));
}

CancellationToken::Registration::Registration(std::unique_ptr<Entry> entry) : entry_(std::move(entry)) {}
CancellationToken::Registration::Registration(Registration&& other) noexcept = default;

CancellationToken::Registration::~Registration() {
  if (entry_ == nullptr) return;
  std::lock_guard<std::mutex> lock(entry_->state->mutex);
  entry_->state->callbacks.erase(entry_->number);
}

}  // namespace fusion
