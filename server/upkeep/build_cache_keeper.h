// Keeps the build cache within its size.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

#include "db/store/build_store.h"
#include "server/dispatch/gate.h"

namespace fusion {

class ServerMetrics;

struct BuildCacheOptions {
  int64_t max_bytes = int64_t{20} << 30;    // all binaries together; 0: no bound
  std::chrono::milliseconds period{60000};  // time between looks; until the next the cache may grow
  // A binary for which no build was reported is kept for so long: its worker may be about to report it.
  std::chrono::minutes unreported{10};
};

// Thread safe.
class BuildCacheKeeper {
 public:
  // The store, the metrics (which may be null) and the context behind the executor outlive the keeper.
  BuildCacheKeeper(BuildStore& store, boost::asio::any_io_executor executor, const BuildCacheOptions& options,
                   ServerMetrics* metrics);
  ~BuildCacheKeeper();  // Stop()
  // Looks now, and then every period.
  void Start();
  // Waits for a look that is under way.
  void Stop();
  // Looks once: removes what is too much, the least recently used first. Says in the log what was removed
  // and, once, when what is left is too much and in use.
  void Look();

 private:
  bool stopped() const;
  void ArmTimer(std::chrono::milliseconds delay);

  BuildStore& store_;
  const BuildCacheOptions options_;
  ServerMetrics* const metrics_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  mutable std::mutex mutex_;
  bool stopped_ = false;             // guarded by mutex_
  boost::asio::steady_timer timer_;  // guarded by mutex_
  std::mutex look_mutex_;            // held by a look
  bool too_large_ = false;           // guarded by look_mutex_; what the last look found
};

}  // namespace fusion
