// Keeps the write-ahead log of the store short, so that no change has to wait until it is moved into the
// file.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <mutex>

#include "db/store/store.h"
#include "server/dispatch/gate.h"

namespace fusion {

// Thread safe.
class CheckpointKeeper {
 public:
  // The store and the context behind the executor outlive the keeper, which takes one thread of the executor
  // while it works.
  CheckpointKeeper(Store& store, boost::asio::any_io_executor executor,
                   std::chrono::milliseconds period = std::chrono::milliseconds(100));
  ~CheckpointKeeper();  // Stop()
  void Start();
  // Waits for work that is under way.
  void Stop();

 private:
  void ArmTimer();

  Store& store_;
  const std::chrono::milliseconds period_;
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::mutex mutex_;
  bool stopped_ = false;             // guarded by mutex_
  bool failing_ = false;             // guarded by mutex_; said in the log once
  boost::asio::steady_timer timer_;  // guarded by mutex_
};

}  // namespace fusion
