#include "server/dispatch/completion_board.h"

#include <utility>

namespace fusion {

std::vector<std::string> CompletionBoard::Watch::Wait(std::chrono::milliseconds at_most) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, at_most, [&] { return interrupted_ || !ended_.empty(); });
  interrupted_ = false;
  return std::exchange(ended_, {});
}

void CompletionBoard::Watch::Interrupt() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    interrupted_ = true;
  }
  changed_.notify_all();
}

std::shared_ptr<CompletionBoard::Watch> CompletionBoard::Open(const std::vector<std::string>& keys) {
  auto watch = std::make_shared<Watch>();
  std::lock_guard<std::mutex> lock(mutex_);
  // Watches that have gone leave empty entries behind; dropping them here keeps the map as large as what is
  // waited for.
  for (auto entry = watches_.begin(); entry != watches_.end();) {
    std::erase_if(entry->second, [](const std::weak_ptr<Watch>& weak) { return weak.expired(); });
    entry = entry->second.empty() ? watches_.erase(entry) : std::next(entry);
  }
  for (const std::string& key : std::set<std::string>(keys.begin(), keys.end()))
    watches_[key].push_back(watch);
  return watch;
}

void CompletionBoard::Ended(const std::string& key) {
  std::vector<std::shared_ptr<Watch>> told;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = watches_.find(key);
    if (found == watches_.end()) return;
    for (const std::weak_ptr<Watch>& weak : found->second) {
      if (std::shared_ptr<Watch> watch = weak.lock()) told.push_back(std::move(watch));
    }
  }
  for (const std::shared_ptr<Watch>& watch : told) {
    {
      std::lock_guard<std::mutex> lock(watch->mutex_);
      watch->ended_.push_back(key);
    }
    watch->changed_.notify_all();
  }
}

void CompletionBoard::InterruptAll() {
  std::set<std::shared_ptr<Watch>> all;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [key, watches] : watches_) {
      for (const std::weak_ptr<Watch>& weak : watches) {
        if (std::shared_ptr<Watch> watch = weak.lock()) all.insert(std::move(watch));
      }
    }
  }
  for (const std::shared_ptr<Watch>& watch : all) watch->Interrupt();
}

}  // namespace fusion
