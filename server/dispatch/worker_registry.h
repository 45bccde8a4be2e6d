// Knows the workers, their devices, and when they were last heard of. It lives in memory; workers make
// themselves known again within seconds of a restart of the server.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/store/records.h"
#include "fusion/v1/optimizer.pb.h"
#include "fusion/v1/worker.pb.h"

namespace fusion {

// Thread safe.
class WorkerRegistry {
 public:
  // A worker not heard of for longer than `connected_for` counts as disconnected.
  explicit WorkerRegistry(std::chrono::microseconds connected_for) : connected_for_(connected_for) {}

  enum class Contact {
    kKnown,        // the same process as before
    kNewInstance,  // the first contact, or another process than before: what earlier ones held is lost
    kReplaced,     // a process that a newer one of the same name has replaced
  };
  // Notes a call of a worker.
  // `call` is the call's number in the order of arrival; 0: unknown. Calls may be noted in another order:
  // what a call says of the worker is ignored where a newer one has said it.
  Contact Touch(const v1::SynchronizeRequest& request, Timestamp now, int64_t call = 0);
  // The connection of this call broke before the answer. If it was the worker's last call, the worker may
  // have died.
  void CallBroke(const std::string& worker, int64_t call, Timestamp now);
  // Returns workers that have not called since their last call broke, at or before `then`, each once.
  std::vector<std::string> TakeSilentSince(Timestamp then);
  // The worker let its leases end: it counts as disconnected until it calls again.
  void Lose(const std::string& worker);
  // Returns whether workers that have called since the server started have the device, but none offers it:
  // all are disconnected or draining, or have taken it out for longer than `out_patience`.
  bool DeviceIsLost(const std::string& device_uuid, Timestamp now,
                    std::chrono::microseconds out_patience) const;
  // The worker was answered; it was there at least until now.
  void Answered(const std::string& worker, const std::string& instance, Timestamp now);

  // Restores the processes that workers had before the server started, in the order in which they came.
  void RestoreProcesses(const std::map<std::string, std::vector<std::string>>& processes);
  // Restores which process of which worker was drained before the server started.
  void RestoreDrained(std::map<std::string, std::string> drained);
  // Gives the present process of the worker no new tasks; returns it. Name: "workers/<id>" or "<id>".
  // NOT_FOUND: it was not heard of since the server started; the message lists the workers that were.
  absl::StatusOr<std::string> Drain(const std::string& name);
  // Returns whether the worker was told to drain, or drains by itself.
  bool Draining(const std::string& worker) const;

  // Returns true the first time that the process is to be told, so that its calls are not answered again and
  // again with the same news.
  bool FirstCancellation(const std::string& worker, const v1::TaskReport& report);
  // Returns how often this assignment, which the process does not list, has been sent again, with this time.
  int CountResent(const std::string& worker, const std::string& task, int64_t fence);

  // Returns the workers, ordered by name.
  std::vector<v1::Worker> Workers(Timestamp now) const;
  // Returns the sound devices of workers that are connected and not draining, in the order of worker and
  // device; arch "" is any, TARGET_AUTO any target.
  std::vector<v1::DeviceDescription> Devices(v1::Target target, const std::string& arch, Timestamp now) const;
  // Returns whether `wanted`, which must be quick and must not use this object, accepts one of Devices.
  bool HasDevice(v1::Target target, const std::string& arch,
                 const std::function<bool(const v1::DeviceDescription&)>& wanted, Timestamp now) const;
  // Returns one of Devices of the same kind (target, arch and name) as `device` and another uuid, if possible
  // of a worker without `device`; none if there is no such device.
  std::optional<v1::DeviceDescription> AnotherDevice(const v1::DeviceDescription& device,
                                                     Timestamp now) const;
  // Returns the device as a worker described it that has called since the server started.
  std::optional<v1::DeviceDescription> KnownDevice(const std::string& device_uuid) const;
  // Returns whether `wanted` accepts what a worker that is connected and not draining has and can build: only
  // these fields of its last request are left. `wanted` must be quick and must not use this object.
  bool SomeoneOffers(const std::function<bool(const v1::SynchronizeRequest&)>& wanted, Timestamp now) const;
  // Connected workers: "alpha (cuda sm_90 NVIDIA H200); beta, gamma, delta and 5 more (host x86-64-v4,
  // draining)", or "none".
  std::string Describe(Timestamp now) const;
  // Returns the names of devices of the target (TARGET_AUTO: of all) that workers have, or had at their last
  // call.
  std::set<std::string> DeviceNames(v1::Target target) const;

  // Waits until a device may have appeared since `version` was read, or an interruption. Returns the present
  // version.
  int64_t version() const;
  int64_t WaitForChange(int64_t version, std::chrono::milliseconds at_most) const;
  void Interrupt();

 private:
  struct Entry {
    std::string instance;
    bool greeted = false;          // it has called since the server started
    bool lost = false;             // it has let its leases end since it called
    v1::SynchronizeRequest offer;  // devices, problems, builds, confinement, version
    Timestamp last_contact{};
    int64_t last_call = 0, broken_call = 0;  // the newest
    Timestamp broke{};                       // when the last call broke; 0: it did not
    bool says_draining = false;
    bool told_to_drain = false;
    int running_tasks = 0;
    std::set<std::string> replaced_instances;
    std::set<std::string> cancellations;  // "<task> <fence>"
    std::map<std::string, int> resent;    // "<task> <fence>"
  };
  // Visits the devices that Devices returns until `visit` returns false. mutex_ is held.
  void VisitDevices(v1::Target target, const std::string& arch, Timestamp now,
                    const std::function<bool(const v1::DeviceDescription&)>& visit) const;
  bool Connected(const Entry& entry, Timestamp now) const {
    return !entry.lost && now - entry.last_contact <= connected_for_;
  }

  const std::chrono::microseconds connected_for_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::map<std::string, Entry> workers_;               // guarded by mutex_
  std::map<std::string, std::string> drained_before_;  // guarded by mutex_
  int64_t version_ = 0;                                // guarded by mutex_
};

// Returns "cuda", "host" or "auto".
std::string LowerCaseName(v1::Target target);

}  // namespace fusion
