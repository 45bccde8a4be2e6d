// GPUs that are not there, for trying out a farm: they take tasks as real ones do, and answer at once or
// after a time, with times that follow from the programs alone. Nothing is computed and nothing verified.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>

#include "worker/agent/blob_transfer.h"
#include "worker/agent/device_health.h"
#include "worker/agent/workplace.h"

namespace fusion {

struct SimulationOptions {
  int devices = 1;
  std::string host;  // in the names of the devices, which are otherwise those of every simulation; "": none
  int build_slots = 4;
  double build_seconds = 0.05;  // of each build
  double time_seconds = 0.1;    // of each timing
  // Shares of timings that end so. Whose turn it is follows from the seed.
  double faults = 0;        // a program has the outcome FAULT
  double wrong = 0;         // a program has the outcome WRONG_RESULT: it saved work, which was seen
  double cheats = 0;        // a program has a time below what its memory traffic takes, and is marked so
  double hangs = 0;         // no answer ever, until the server takes the task away
  double failures = 0;      // the worker says that it failed
  double sick_devices = 0;  // after the timing the device is taken out for sick_seconds
  double sick_seconds = 1;
  int out = 0;  // so many devices, the last ones, do not work until sick_seconds after the start
  uint64_t seed = 1;
};

class SimulatedWorkplace final : public Workplace {
 public:
  SimulatedWorkplace(const SimulationOptions& options, BlobTransfer* blobs);
  ~SimulatedWorkplace() override;

  std::vector<v1::DeviceDescription> devices() const override { return devices_; }
  const std::vector<v1::BuildCapability>& builds() const override { return builds_; }
  int build_slots() const override { return options_.build_slots; }
  const std::vector<std::string>& notes() const override { return notes_; }
  const v1::Confinement& confinement() const override { return confinement_; }
  std::vector<v1::DeviceProblem> problems() const override { return health_.Problems(); }
  void OnChange(std::function<void()> changed) override { health_.OnChange(std::move(changed)); }
  void Start(const v1::Assignment& assignment, std::stop_token stop,
             std::function<void(v1::TaskReport)> done) override;

 private:
  void Build(const v1::BuildTask& task, std::stop_token stop, v1::TaskReport* report);
  // False: it hangs.
  bool Time(const v1::TimeTask& task, std::stop_token stop, v1::TaskReport* report);
  bool Happens(double share);
  // Takes the device out for sick_seconds.
  void FallSick(const std::string& uuid, const std::string& reason);
  // False: stopped before the time was over.
  bool Wait(double seconds, std::stop_token stop);

  const SimulationOptions options_;
  BlobTransfer* const blobs_;
  std::vector<v1::DeviceDescription> devices_;  // constant, as the next three
  std::vector<v1::BuildCapability> builds_;
  std::vector<std::string> notes_;
  v1::Confinement confinement_;
  DeviceHealth health_;
  std::stop_source ending_;
  std::mutex mutex_;
  std::mt19937_64 random_;  // guarded by mutex_
  boost::asio::thread_pool threads_;
};

// The times that a simulated device gives a program: microseconds, by its launches.
v1::Statistics SimulatedTimes(const v1::Program& program);

}  // namespace fusion
