#include "server/upkeep/checkpoint_keeper.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace fusion {

CheckpointKeeper::CheckpointKeeper(Store& store, boost::asio::any_io_executor executor,
                                   std::chrono::milliseconds period)
    : store_(store), period_(period), timer_(std::move(executor)) {}

CheckpointKeeper::~CheckpointKeeper() { Stop(); }

void CheckpointKeeper::Start() { ArmTimer(); }

void CheckpointKeeper::Stop() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    timer_.cancel();
  }
  gate_->Close();
}

void CheckpointKeeper::ArmTimer() {
  std::lock_guard lock(mutex_);
  if (stopped_) return;
  timer_.expires_after(period_);
  timer_.async_wait([this, gate = gate_](const boost::system::error_code& error) {
    Gate::Pass pass(*gate);
    if (!pass || error) return;
    const absl::Status moved = store_.Checkpoint();
    {
      std::lock_guard held(mutex_);
      if (const bool first = !std::exchange(failing_, !moved.ok()); first && !moved.ok())
        spdlog::error("the write-ahead log grows: {}", moved.ToString());
    }
    ArmTimer();
  });
}

}  // namespace fusion
