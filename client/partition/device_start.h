// A thread that makes the device while the program goes on: a driver takes tenths of a second to begin.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "client/partition/device.h"

namespace fusion {

class DeviceStart {
 public:
  // Returns null where there is no device.
  using Make = std::function<std::unique_ptr<PartitionDevice>()>;

  DeviceStart() = default;
  DeviceStart(const DeviceStart&) = delete;
  DeviceStart& operator=(const DeviceStart&) = delete;
  ~DeviceStart();

  // One thread at a time calls these. Begin does nothing but the first time.
  void Begin(const Make& make);
  // It has begun in a parent of this process: nothing else may be called.
  bool IsLost() const;
  // Waits until the device is there, or is known not to be.
  void Wait();
  // Returns the device once it is there, the first time; null otherwise.
  std::unique_ptr<PartitionDevice> Take();

  // The process ends, which a driver that is about to begin may not survive: waits for it, but not for ever.
  // Nothing begins after. Any thread may call it.
  void End();

 private:
  enum class State { kNotBegun, kBegun, kDone };

  void Join();

  std::atomic<int> forks_{-1};  // of the process and its parents when it began; -1: it has not
  std::atomic<State> state_{State::kNotBegun};
  std::mutex mutex_;
  std::condition_variable is_done_;
  // mutex_ guards these fields.
  std::thread thread_;
  std::unique_ptr<PartitionDevice> device_;
};

}  // namespace fusion
