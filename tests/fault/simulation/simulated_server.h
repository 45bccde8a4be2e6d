// The real dispatcher over a real store, in one thread and on simulated time, which can be killed.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "db/store/store.h"
#include "server/dispatch/dispatcher.h"
#include "tests/fault/simulation/event_loop.h"

namespace fusion {

class SimulatedServer {
 public:
  // The database lies in the folder and outlives the server's processes.
  SimulatedServer(EventLoop& loop, std::string folder);
  ~SimulatedServer();

  // False: the store or the dispatcher could not be started; the reason is in *error.
  bool Start(std::string* error);
  // Kills the server: what has been committed stays; all else is gone.
  void Kill();
  bool running() const { return dispatcher_ != nullptr; }
  // The clock is wrong by this from the next start on.
  void set_skew(EventLoop::Duration skew) { skew_ = skew; }

  // These are called only while the server runs.
  v1::SynchronizeResponse Synchronize(const v1::SynchronizeRequest& request);
  void Tick();
  Dispatcher& dispatcher() { return *dispatcher_; }
  Store& store() { return *store_; }
  Timestamp Now() const { return clock_.Now(); }

 private:
  const std::string folder_;
  SimulatedClock clock_;
  EventLoop::Duration skew_{0};
  boost::asio::io_context io_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Dispatcher> dispatcher_;
};

}  // namespace fusion
