// Who is there: workers, their devices, when they were last heard of. Lives in memory; workers make
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
  // call: numbers calls in the order in which they came, in which they need not be taken up: what a call says
  // of the worker is left alone where a newer one has said it. 0: unknown.
  Contact Touch(const v1::SynchronizeRequest& request, Timestamp now, int64_t call = 0);
  // The connection of this call broke before the answer. If it was the worker's last call, the worker may
  // have died.
  void CallBroke(const std::string& worker, int64_t call, Timestamp now);
  // Workers that have not called since their last call broke, at or before `then`; each is named once.
  std::vector<std::string> TakeSilentSince(Timestamp then);
  // The worker let its leases end: it counts as disconnected until it calls again.
  void Lose(const std::string& worker);
  // A worker that has called since the server started has the device, and none offers it: those that have it
  // are disconnected or draining, or have taken it out for longer than `out_patience`.
  bool DeviceIsLost(const std::string& device_uuid, Timestamp now,
                    std::chrono::microseconds out_patience) const;
  // The worker was answered; it was there at least until now.
  void Answered(const std::string& worker, const std::string& instance, Timestamp now);

  // Which processes workers had before the server started, in the order in which they came.
  void RestoreProcesses(const std::map<std::string, std::vector<std::string>>& processes);
  // Which process of which worker was drained before the server started.
  void RestoreDrained(std::map<std::string, std::string> drained);
  // No new tasks for the present process of the worker; returns that process. Name: "workers/<id>" or "<id>".
  // NOT_FOUND: never heard of since the server started; the message lists those that were.
  absl::StatusOr<std::string> Drain(const std::string& name);
  // Told to drain, or draining by itself.
  bool Draining(const std::string& worker) const;

  // For messages to a process: true the first time, so that a call is not answered again and again with the
  // same news.
  bool FirstCancellation(const std::string& worker, const v1::TaskReport& report);
  // How often this assignment, which the process does not list, has been sent again; counts the present one.
  int CountResent(const std::string& worker, const std::string& task, int64_t fence);

  // By name.
  std::vector<v1::Worker> Workers(Timestamp now) const;
  // Sound devices of workers that are connected and not draining, in the order of worker and device; arch ""
  // is any, TARGET_AUTO any target.
  std::vector<v1::DeviceDescription> Devices(v1::Target target, const std::string& arch, Timestamp now) const;
  // Whether `wanted` accepts one of Devices. It must be quick and must not use this object.
  bool HasDevice(v1::Target target, const std::string& arch,
                 const std::function<bool(const v1::DeviceDescription&)>& wanted, Timestamp now) const;
  // Of Devices, one of the same kind (target, arch and name) as `device` and of another uuid, if possible of
  // a worker that has not `device` too; none.
  std::optional<v1::DeviceDescription> AnotherDevice(const v1::DeviceDescription& device,
                                                     Timestamp now) const;
  // Of any worker that has called since the server started.
  std::optional<v1::DeviceDescription> KnownDevice(const std::string& device_uuid) const;
  // Whether `wanted` accepts what a worker that is connected and not draining has and can build: its last
  // request, of which the fields that say so are left. It must be quick and must not use this object.
  bool SomeoneOffers(const std::function<bool(const v1::SynchronizeRequest&)>& wanted, Timestamp now) const;
  // Connected workers: "alpha (cuda sm_90 NVIDIA H200); beta, gamma, delta and 5 more (host x86-64-v4,
  // draining)", or "none".
  std::string Describe(Timestamp now) const;
  // Names of the devices of the target (TARGET_AUTO: of all) that workers have, or had when they called last.
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
    Timestamp broke{};                       // the last call; 0: it did not
    bool says_draining = false;
    bool told_to_drain = false;
    int running_tasks = 0;
    std::set<std::string> replaced_instances;
    std::set<std::string> cancellations;  // "<task> <fence>"
    std::map<std::string, int> resent;    // "<task> <fence>"
  };
  // Of Devices, until `visit` returns false. mutex_ is held.
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

// "cuda", "host" or "auto".
std::string LowerCaseName(v1::Target target);

}  // namespace fusion
