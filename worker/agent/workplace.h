// A worker's tasks are done at a workplace.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "fusion/v1/device.pb.h"
#include "fusion/v1/worker.pb.h"

namespace fusion {

// Thread safe.
class Workplace {
 public:
  // Waits for the tasks that run: stop them first.
  virtual ~Workplace() = default;

  // The devices stay the same as long as the workplace lives. Devices that have not worked since it began
  // have no figures, and are among the problems.
  virtual std::vector<v1::DeviceDescription> devices() const = 0;
  // The capabilities stay the same as long as the workplace lives, as do the next three.
  virtual const std::vector<v1::BuildCapability>& builds() const = 0;
  virtual int build_slots() const = 0;
  // Tells people why something is missing.
  virtual const std::vector<std::string>& notes() const = 0;
  virtual const v1::Confinement& confinement() const = 0;

  // Devices that are taken out for now, because a known kernel does not run on them.
  virtual std::vector<v1::DeviceProblem> problems() const = 0;
  // `changed` is called, from any thread, when problems() may have changed. Set before the first Start.
  virtual void OnChange(std::function<void()> changed) = 0;

  // The function is called, from any thread, with the task and the fence of a timing that is about to end:
  // its lane may be given the next one, which then does not wait for the server. Set before the first Start.
  virtual void OnNearlyDone(std::function<void(const std::string& task, int64_t fence)>) {}

  // Does the task on a thread of its own and calls done with its report from there; a task that was stopped
  // reports a failure. Timings on one device run one after another.
  virtual void Start(const v1::Assignment& assignment, std::stop_token stop,
                     std::function<void(v1::TaskReport)> done) = 0;
};

}  // namespace fusion
