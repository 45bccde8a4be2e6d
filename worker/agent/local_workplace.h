// The devices and compilers of this machine: builds on a pool of threads, timings on one lane for each
// device.
#pragma once

#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/sandbox/machine_offer.h"
#include "fusion/v1/device.pb.h"
#include "fusion/v1/worker.pb.h"
#include "worker/agent/blob_transfer.h"
#include "worker/agent/device_health.h"
#include "worker/agent/host_gate.h"
#include "worker/agent/worker_metrics.h"
#include "worker/agent/workplace.h"
#include "worker/build/builder.h"
#include "worker/measure/runner_pool.h"
#include "worker/measure/runner_process.h"
#include "worker/measure/time_task.h"

namespace fusion {

struct WorkplaceOptions {
  bool cuda = true;  // targets wanted
  bool host = true;
  bool devices = true;         // false: builds only
  int build_slots = 0;         // 0: as many as AvailableProcessors
  std::string runner_program;  // "": as RunnerProcess finds it
  int spare_runners = 0;       // of each device, started before they are needed (RunnerPool)
  // The time until a device that failed its probe is tried again the first time.
  std::chrono::milliseconds first_probe_delay{5000};
  // Native code of candidates for the host is refused where it cannot be confined (ConfinesHostCode), unless
  // the operator, or the user on a machine of their own, allows it here.
  bool allow_unconfined_host_code = false;
  // Stands instead of what this machine offers, where that decides what is refused.
  std::optional<MachineOffer> offer;
  std::optional<bool> gpu_nodes;     // whether there are nodes of GPUs in /dev, instead of looking
  WorkerMetrics* metrics = nullptr;  // may be null; outlives the workplace
};

// Thread safe. Must outlive nothing that it was given.
class LocalWorkplace final : public Workplace {
 public:
  // Finds and measures the devices and the compilers: takes a second or two. A GPU that does not work takes
  // no other device away: it is out, and tried again. NotFound when there is neither a device nor a compiler,
  // or no runner program.
  static absl::StatusOr<std::unique_ptr<LocalWorkplace>> Open(const WorkplaceOptions& options,
                                                              BlobTransfer* blobs);
  ~LocalWorkplace() override;

  std::vector<v1::DeviceDescription> devices() const override;
  const std::vector<v1::BuildCapability>& builds() const override { return builds_; }
  int build_slots() const override { return builders_.empty() ? 0 : build_slots_; }
  const std::vector<std::string>& notes() const override { return notes_; }
  const v1::Confinement& confinement() const override { return confinement_; }
  std::vector<v1::DeviceProblem> problems() const override { return health_.Problems(); }
  void OnChange(std::function<void()> changed) override { health_.OnChange(std::move(changed)); }
  void OnNearlyDone(std::function<void(const std::string&, int64_t)> nearly_done) override {
    nearly_done_ = std::move(nearly_done);
  }
  void Start(const v1::Assignment& assignment, std::stop_token stop,
             std::function<void(v1::TaskReport)> done) override;

 private:
  // A device, its runner and the one thread that uses it.
  struct Lane {
    v1::DeviceDescription device;  // as it was when the workplace was opened
    // The next two are used by the thread, once there are tasks.
    bool has_figures = true;  // false: the device has not worked yet
    double copy_bytes_per_second = 0;
    std::unique_ptr<RunnerProcess> runner;
    int timings_of_runner = 0;         // of a host's, since it was renewed
    std::unique_ptr<RunnerPool> pool;  // null: no spares
    std::mutex device_mutex;  // held by whoever uses the device: timings, probes, opening it in a spare
    // The end of the last timing; used by the thread, as all but device and mutex.
    std::chrono::steady_clock::time_point last_ended;
    boost::asio::thread_pool thread{1};
  };
  LocalWorkplace(const WorkplaceOptions& options, BlobTransfer* blobs);
  // Describes the devices, in the strongest confinement in which a GPU that is there is found: in a weaker
  // one only if it works in that and, after that, still not in the stronger one.
  absl::StatusOr<v1::DescribeReply> Describe(const WorkplaceOptions& options,
                                             std::unique_ptr<RunnerProcess>* runner);
  // Describes each GPU in a runner of its own, so that one that ends its runner takes no other along. Leaves
  // out the host.
  absl::StatusOr<v1::DescribeReply> DescribeOneByOne(const WorkplaceOptions& options);
  void Note(absl::string_view message) { notes_.emplace_back(message); }
  void DescribeConfinement(const WorkplaceOptions& options, bool host_refused);
  void Build(const v1::BuildTask& task, std::stop_token stop, v1::TaskReport* report);
  void MakePool(Lane* lane, const SandboxPolicy& policy, const WorkplaceOptions& options);
  void Time(Lane* lane, const v1::TimeTask& task, std::stop_token stop, v1::TaskReport* report);
  // The device failed its probe: it is out, and tried again in `delay`, then in twice that, until it is
  // sound.
  void TakeOut(Lane* lane, const std::string& reason, std::chrono::milliseconds delay);
  // Returns OK when a known kernel computes rightly on the device, which then has figures.
  absl::Status Probe(Lane* lane);

  BlobTransfer* const blobs_;
  WorkerMetrics* const metrics_;
  const int build_slots_;
  const std::chrono::milliseconds first_probe_delay_;
  mutable std::mutex devices_mutex_;
  std::vector<v1::DeviceDescription> devices_;  // guarded by devices_mutex_
  std::vector<v1::BuildCapability> builds_;     // constant after Open, as all below except the gate
  std::vector<std::string> notes_;
  SandboxPolicy device_policy_;  // of runners for GPUs, without a GPU
  v1::Confinement confinement_;
  std::map<v1::Target, std::unique_ptr<Builder>> builders_;
  std::map<std::string, std::unique_ptr<Lane>> lanes_;  // by uuid
  std::function<void(const std::string&, int64_t)> nearly_done_;
  HostGate gate_;
  DeviceHealth health_;
  std::stop_source ending_;
  boost::asio::thread_pool build_threads_;
};

}  // namespace fusion
