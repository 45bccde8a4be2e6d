// Implements how JobRunner gives jobs places, which they leave while they wait for something else.
#include <boost/asio/post.hpp>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "server/jobs/job_runner.h"

namespace fusion {

void JobRunner::RunNext() {
  std::string job;
  std::shared_ptr<Active> active;
  {
    std::lock_guard lock(mutex_);
    std::optional<std::string> next = line_.Take();
    if (!next.has_value()) return;  // whoever leaves a place calls again
    job = *std::move(next);
    active = active_.at(job);
  }
  // With one user fewer the others have larger shares, so there may be more than one.
  boost::asio::post(pool_, [this] { RunNext(); });
  Run(job, active);
  boost::asio::post(pool_, [this] { RunNext(); });
}

void JobRunner::LeavePlace(const std::string& job) {
  {
    std::lock_guard lock(mutex_);
    if (line_.resting() >= kMostWaiting) return;
    line_.Rest(job);
  }
  OfferPlaces();
}

void JobRunner::OfferPlaces() {
  place_.notify_all();
  boost::asio::post(pool_, [this] { RunNext(); });
}

void JobRunner::ReturnToPlace(const std::string& job, const Active& active) {
  bool cancelled = false;  // guarded by mutex_, under which the token cannot be asked: it calls what locks it
  {
    const CancellationToken::Registration on_cancel = active.cancellation.OnCancel([&] {
      std::lock_guard lock(mutex_);
      cancelled = true;
      place_.notify_all();
    });
    std::unique_lock lock(mutex_);
    line_.Return(job);
    place_.wait(lock, [&] { return line_.TakeBack(job) || cancelled; });  // Stop cancels, too
    line_.TakeBackAnyway(job);
  }
  boost::asio::post(pool_, [this] { RunNext(); });
}

}  // namespace fusion
