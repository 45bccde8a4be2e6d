#include "worker/agent/simulated_workplace.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <condition_variable>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "base/simulated_device.h"
#include "worker/agent/assignment_scope.h"

namespace fusion {
namespace {

// A program that cheats claims this share of its time.
constexpr double kCheatersShare = 0.001;

v1::DeviceDescription SimulatedGpu(const std::string& host, int number) {
  // Figures of the size of an H200's.
  v1::DeviceDescription device;
  device.set_name("Simulated GPU");
  device.set_target(v1::CUDA);
  device.set_arch("sm_90");
  device.set_driver_version(kSimulatedDriver);
  device.set_toolkit_version(kSimulatedDriver);
  device.set_multiprocessors(132);
  device.set_max_threads_per_block(1024);
  device.set_max_threads_per_multiprocessor(2048);
  device.set_max_blocks_per_multiprocessor(32);
  device.set_registers_per_multiprocessor(65536);
  device.set_shared_bytes_per_block(227 << 10);
  device.set_shared_bytes_per_multiprocessor(228 << 10);
  device.set_l2_bytes(50 << 20);
  device.set_memory_bytes(int64_t{140} << 30);
  device.set_copy_bytes_per_second(4.2e12);
  device.set_peak_flops(6e13);
  device.set_launch_seconds(2e-6);
  device.set_uuid(absl::StrCat("SIMULATED-", host, host.empty() ? "" : "-", number));
  return device;
}

}  // namespace

v1::Statistics SimulatedTimes(const v1::Program& program) {
  double microseconds = 0;
  for (const v1::Launch& launch : program.launches()) {
    const std::string digest =
        Sha256Hex(absl::StrCat(launch.kernel(), " ", launch.grid(), " ", launch.threads()));
    microseconds += 5 + static_cast<double>(std::stoul(digest.substr(0, 6), nullptr, 16) % 1000) / 10;
  }
  v1::Statistics times;
  times.set_median(microseconds * 1e-6);
  times.set_low(0.999 * times.median());
  times.set_high(1.001 * times.median());
  times.set_samples(15);
  return times;
}

SimulatedWorkplace::SimulatedWorkplace(const SimulationOptions& options, BlobTransfer* blobs)
    : options_(options),
      blobs_(blobs),
      random_(options.seed),
      threads_(options.devices + options.build_slots) {
  for (int i = 0; i < options_.devices; ++i) devices_.push_back(SimulatedGpu(options_.host, i));
  if (options_.build_slots > 0) builds_.emplace_back().set_target(v1::CUDA);
  notes_.push_back("devices are simulated: nothing is computed, and no result is verified");
  confinement_.set_runner("nothing runs");
  for (int i = std::max(0, options_.devices - options_.out); i < options_.devices; ++i)
    FallSick(devices_[i].uuid(), "a simulated device that does not start");
}

SimulatedWorkplace::~SimulatedWorkplace() {
  ending_.request_stop();
  threads_.join();
}

bool SimulatedWorkplace::Happens(double share) {
  std::lock_guard lock(mutex_);
  return std::bernoulli_distribution(std::clamp(share, 0.0, 1.0))(random_);
}

void SimulatedWorkplace::FallSick(const std::string& uuid, const std::string& reason) {
  health_.TakeOut(uuid, reason);
  boost::asio::post(threads_, [this, uuid] {
    Wait(options_.sick_seconds, std::stop_token());
    health_.BringBack(uuid);
  });
}

bool SimulatedWorkplace::Wait(double seconds, std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  // Wakes for either. Made and ended without the lock: it may run in this thread, or be waited for.
  std::stop_callback ending(ending_.get_token(), [&] {
    std::lock_guard wake(mutex);
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  changed.wait_for(lock, stop, std::chrono::duration<double>(seconds),
                   [&] { return ending_.stop_requested(); });
  return !stop.stop_requested() && !ending_.stop_requested();
}

void SimulatedWorkplace::Start(const v1::Assignment& assignment, std::stop_token stop,
                               std::function<void(v1::TaskReport)> done) {
  boost::asio::post(threads_, [this, assignment, stop, done = std::move(done)] {
    const AssignmentScope scope(assignment.task(), assignment.traceparent());
    v1::TaskReport report;
    report.set_task(assignment.task());
    report.set_fence(assignment.fence());
    if (assignment.has_build()) {
      Build(assignment.build(), stop, &report);
    } else if (!Time(assignment.time(), stop, &report)) {
      return;
    }
    done(std::move(report));
  });
}

void SimulatedWorkplace::Build(const v1::BuildTask& task, std::stop_token stop, v1::TaskReport* report) {
  if (!Wait(options_.build_seconds, stop)) return report->set_failure("stopped");
  const std::string binary = absl::StrCat("simulated device code of ", task.key());
  const std::string digest = absl::StrCat("sha256:", Sha256Hex(binary));
  if (absl::Status written = blobs_->Write(digest, binary, stop); !written.ok())
    return report->set_failure(absl::StrCat("the device code could not be stored: ", written.message()));
  report->mutable_build()->set_outcome(v1::OK);
  report->mutable_build()->set_binary(digest);
  report->mutable_build()->set_seconds(options_.build_seconds);
}

bool SimulatedWorkplace::Time(const v1::TimeTask& task, std::stop_token stop, v1::TaskReport* report) {
  if (Happens(options_.hangs)) {
    Wait(1e9, stop);
    return false;
  }
  if (!Wait(options_.time_seconds, stop)) {
    report->set_failure("stopped");
    return true;
  }
  if (Happens(options_.failures)) {
    report->set_failure("a simulated failure of the worker");
    return true;
  }
  v1::TimeResult& result = *report->mutable_time();
  // The unfused program is our own: it may fault, but does not cheat.
  const auto measure = [&](const v1::Program& program, bool ours, v1::ProgramMeasurement* measurement) {
    measurement->set_name(program.name());
    if (Happens(options_.faults)) {
      measurement->set_outcome(v1::FAULT);
      measurement->set_message("a simulated fault");
      return;
    }
    if (!ours && Happens(options_.wrong)) {
      measurement->set_outcome(v1::WRONG_RESULT);
      measurement->set_message("a simulated wrong result");
      return;
    }
    measurement->set_outcome(v1::OK);
    std::set<std::string> binaries;
    for (const v1::Launch& launch : program.launches())
      if (binaries.insert(launch.binary()).second) measurement->add_binaries(launch.binary());
    *measurement->mutable_cold() = SimulatedTimes(program);
    if (!ours && Happens(options_.cheats)) {
      v1::Statistics& times = *measurement->mutable_cold();
      times.set_median(kCheatersShare * times.median());
      times.set_low(kCheatersShare * times.low());
      times.set_high(kCheatersShare * times.high());
      measurement->set_below_floor(true);
    }
    *measurement->mutable_warm() = measurement->cold();
    v1::Statistics& speedup = *measurement->mutable_paired_speedup();
    speedup.set_median(SimulatedTimes(task.session().unfused()).median() / measurement->cold().median());
    speedup.set_low(speedup.median());
    speedup.set_high(speedup.median());
    *measurement->mutable_paired_warm_speedup() = speedup;
  };
  if (task.session().unfused().launches_size() > 0)
    measure(task.session().unfused(), true, result.mutable_unfused());
  for (const v1::Program& program : task.programs()) measure(program, false, result.add_programs());
  result.mutable_conditions()->set_driver_version("simulated");
  if (Happens(options_.sick_devices)) FallSick(task.device_uuid(), "a simulated illness");
  return true;
}

}  // namespace fusion
