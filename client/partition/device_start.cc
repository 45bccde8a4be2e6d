#include "client/partition/device_start.h"

#include <chrono>
#include <exception>
#include <utility>

#include "client/partition/own_threads.h"

namespace fusion {
namespace {

// Much longer than a driver takes to begin.
constexpr std::chrono::seconds kLongestStart{10};

}  // namespace

DeviceStart::~DeviceStart() {
  if (thread_.joinable() && IsLost()) thread_.detach();
  Join();
}

void DeviceStart::Begin(const Make& make) {
  if (state_ != State::kNotBegun) return;
  forks_ = ForksUntilNow();
  std::lock_guard<std::mutex> lock(mutex_);
  State expected = State::kNotBegun;
  if (!state_.compare_exchange_strong(expected, State::kBegun)) return;
  const SignalsForOthers blocked;
  try {
    thread_ = std::thread([this, make] {
      std::unique_ptr<PartitionDevice> device;
      try {
        device = make();
      } catch (const std::exception&) {
        // Without memory there is no device.
      }
      std::lock_guard<std::mutex> lock(mutex_);
      device_ = std::move(device);
      state_ = State::kDone;
      is_done_.notify_all();
    });
  } catch (const std::exception&) {
    state_ = State::kDone;  // the system gives no more threads
  }
}

bool DeviceStart::IsLost() const {
  const int forks = forks_;
  return forks >= 0 && forks != ForksUntilNow();
}

void DeviceStart::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  is_done_.wait(lock, [this] { return state_ != State::kBegun; });
}

std::unique_ptr<PartitionDevice> DeviceStart::Take() {
  if (state_ != State::kDone) return nullptr;
  std::lock_guard<std::mutex> lock(mutex_);
  Join();
  return std::move(device_);
}

void DeviceStart::Join() {
  if (thread_.joinable()) thread_.join();
}

void DeviceStart::End() {
  if (IsLost()) return;
  std::unique_lock<std::mutex> lock(mutex_);
  State expected = State::kNotBegun;
  state_.compare_exchange_strong(expected, State::kDone);
  is_done_.wait_for(lock, kLongestStart, [this] { return state_ == State::kDone; });
  if (state_ == State::kDone) Join();
}

}  // namespace fusion
