#include "worker/measure/runner_pool.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace fusion {
namespace {

constexpr std::chrono::seconds kFirstDelay{5};
constexpr std::chrono::seconds kLongestDelay{300};

}  // namespace

RunnerPool::RunnerPool(RunnerPoolOptions options)
    : options_(std::move(options)), thread_([this](std::stop_token stop) { Work(stop); }) {}

RunnerPool::~RunnerPool() {
  thread_.request_stop();
  thread_.join();
}

int RunnerPool::ready() const {
  std::lock_guard lock(mutex_);
  return static_cast<int>(ready_.size());
}

void RunnerPool::Tell() {
  if (!options_.changed) return;
  std::lock_guard lock(telling_);
  options_.changed(ready());
}

std::unique_ptr<RunnerProcess> RunnerPool::Take() {
  while (true) {
    std::unique_ptr<RunnerProcess> spare;
    {
      std::lock_guard lock(mutex_);
      if (ready_.empty()) return nullptr;
      spare = std::move(ready_.back());
      ready_.pop_back();
    }
    taken_.notify_all();
    Tell();
    // It may have died since, of what killed another runner or by the system's hand: nothing of that is a
    // program's fault.
    if (spare->Open(options_.device_uuid, /*beside_timings=*/false).ok()) return spare;
  }
}

void RunnerPool::Work(std::stop_token stop) {
  std::chrono::seconds delay = kFirstDelay;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      const auto wanted = static_cast<size_t>(std::max(options_.spares, 0));
      if (!taken_.wait(lock, stop, [&] { return ready_.size() < wanted; })) return;
    }
    std::unique_ptr<RunnerProcess> made = Make(stop);
    if (stop.stop_requested()) return;
    if (made == nullptr) {
      std::unique_lock lock(mutex_);
      taken_.wait_for(lock, stop, delay, [] { return false; });
      if (stop.stop_requested()) return;
      delay = std::min(2 * delay, kLongestDelay);
      continue;
    }
    delay = kFirstDelay;
    {
      std::lock_guard lock(mutex_);
      ready_.push_back(std::move(made));
    }
    Tell();
  }
}

std::unique_ptr<RunnerProcess> RunnerPool::Make(std::stop_token stop) {
  auto runner = std::make_unique<RunnerProcess>(options_.program, options_.policy);
  bool sound = true;
  if (options_.beside_timings) {
    sound = false;
    options_.beside_timings(
        stop, [&] { sound = runner->Open(options_.device_uuid, /*beside_timings=*/true, stop).ok(); });
  }
  bool opened = false;
  if (sound)
    options_.with_device(
        stop, [&] { opened = runner->Open(options_.device_uuid, /*beside_timings=*/false, stop).ok(); });
  return opened ? std::move(runner) : nullptr;
}

}  // namespace fusion
