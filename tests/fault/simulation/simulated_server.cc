#include "tests/fault/simulation/simulated_server.h"

#include <utility>

namespace fusion {

SimulatedServer::SimulatedServer(EventLoop& loop, std::string folder)
    : folder_(std::move(folder)), clock_(loop) {}

SimulatedServer::~SimulatedServer() { Kill(); }

bool SimulatedServer::Start(std::string* error) {
  clock_.set_skew(skew_);
  StoreOptions store_options;
  store_options.readers = 1;
  absl::StatusOr<std::unique_ptr<Store>> store = OpenSqliteStore(folder_ + "/fusion.db", store_options);
  if (!store.ok()) {
    *error = store.status().ToString();
    return false;
  }
  store_ = *std::move(store);
  DispatcherOptions options;
  options.expiry_period = std::chrono::hours(24);  // the simulation calls Tick
  dispatcher_ = std::make_unique<Dispatcher>(*store_, io_.get_executor(), clock_, options);
  if (absl::Status status = dispatcher_->Start(); !status.ok()) {
    *error = status.ToString();
    return false;
  }
  return true;
}

void SimulatedServer::Kill() {
  dispatcher_.reset();
  store_.reset();
  io_.restart();
  io_.poll();
}

v1::SynchronizeResponse SimulatedServer::Synchronize(const v1::SynchronizeRequest& request) {
  v1::SynchronizeResponse answer;
  // Without a time to wait the answer comes at once.
  dispatcher_->Synchronize(request, [&](v1::SynchronizeResponse response) { answer = std::move(response); });
  io_.restart();
  io_.poll();
  return answer;
}

void SimulatedServer::Tick() {
  dispatcher_->Tick();
  io_.restart();
  io_.poll();
}

}  // namespace fusion
