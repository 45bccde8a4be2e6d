#include "server/upkeep/build_cache_keeper.h"

#include <spdlog/spdlog.h>

#include <limits>
#include <utility>

#include "server/metrics/server_metrics.h"

namespace fusion {
namespace {

// In one transaction; other changes to the store wait for it.
constexpr int kMostAtATime = 200;

}  // namespace

BuildCacheKeeper::BuildCacheKeeper(BuildStore& store, boost::asio::any_io_executor executor,
                                   const BuildCacheOptions& options, ServerMetrics* metrics)
    : store_(store), options_(options), metrics_(metrics), timer_(std::move(executor)) {}

BuildCacheKeeper::~BuildCacheKeeper() { Stop(); }

void BuildCacheKeeper::Start() { ArmTimer(std::chrono::milliseconds(0)); }

void BuildCacheKeeper::Stop() {
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(stopped_, true)) return;
    timer_.cancel();
  }
  gate_->Close();
}

bool BuildCacheKeeper::stopped() const {
  std::lock_guard lock(mutex_);
  return stopped_;
}

void BuildCacheKeeper::ArmTimer(std::chrono::milliseconds delay) {
  std::lock_guard lock(mutex_);
  if (stopped_) return;
  timer_.expires_after(delay);
  timer_.async_wait([this, gate = gate_](const boost::system::error_code& error) {
    Gate::Pass pass(*gate);
    if (!pass || error) return;
    Look();
    ArmTimer(options_.period);
  });
}

void BuildCacheKeeper::Look() {
  std::lock_guard look(look_mutex_);
  const int64_t most = options_.max_bytes > 0 ? options_.max_bytes : std::numeric_limits<int64_t>::max();
  int64_t evicted = 0, evicted_bytes = 0;
  while (true) {
    const absl::StatusOr<BuildCacheTrim> trim =
        store_.TrimBuildCache(most, TimeOfDay() - options_.unreported, kMostAtATime);
    if (!trim.ok()) {
      spdlog::error("the build cache is not kept within its size: {}", trim.status().ToString());
      return;
    }
    evicted += trim->evicted;
    evicted_bytes += trim->evicted_bytes;
    if (metrics_ != nullptr) {
      metrics_->build_cache_bytes->Set(static_cast<double>(trim->bytes));
      metrics_->build_cache_evictions->Add(static_cast<double>(trim->evicted));
      metrics_->build_cache_evicted_bytes->Add(static_cast<double>(trim->evicted_bytes));
    }
    const bool too_large = trim->bytes > most;
    if (too_large && trim->evicted > 0 && !stopped()) continue;
    if (evicted > 0)
      spdlog::info(
          "build cache: {} binaries ({} bytes) were not used for the longest time and are removed; {} are "
          "left ({} bytes)",
          evicted, evicted_bytes, trim->blobs, trim->bytes);
    if (too_large && !too_large_ && trim->evicted == 0)
      spdlog::warn(
          "the build cache has {} bytes, more than the {} of --cache-size: unfinished jobs use what is left",
          trim->bytes, most);
    too_large_ = too_large;
    return;
  }
}

}  // namespace fusion
