// Workers, the devices that they had, and their attempts at tasks. Rules for all calls: db/store/store.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/store/records.h"

namespace fusion {

class WorkerStore {
 public:
  virtual ~WorkerStore() = default;

  // Notes that a process of the worker has come that was not known. The last few of each worker are kept.
  virtual absl::Status AddWorkerProcess(const std::string& worker, const std::string& instance) = 0;
  // Returns the processes of each worker, in the order in which they came.
  virtual absl::StatusOr<std::map<std::string, std::vector<std::string>>> WorkerProcesses() = 0;
  // Notes that this process of the worker takes no new tasks. This ends when the worker comes back with a new
  // process.
  virtual absl::Status SetDrained(const std::string& worker, const std::string& instance) = 0;
  // Returns the drained process of each worker that has one.
  virtual absl::StatusOr<std::map<std::string, std::string>> DrainedWorkers() = 0;

  // INVALID_ARGUMENT: no uuid.
  virtual absl::Status UpsertDevice(const DeviceRecord& device) = 0;
  // Returns all devices ever seen, by uuid.
  virtual absl::StatusOr<std::vector<DeviceRecord>> Devices() = 0;
  // These calls return attempts in the order of their claims, and in that of their ends, after the given
  // AttemptRecord::number or ended_order; at most limit: what happened since the caller looked last, whoever
  // did it.
  virtual absl::StatusOr<std::vector<AttemptRecord>> ClaimsAfter(int64_t number, int limit) = 0;
  virtual absl::StatusOr<std::vector<AttemptRecord>> EndsAfter(int64_t ended_order, int limit) = 0;
  // Returns the number of the last claim and the order of the last end; 0: none.
  virtual absl::StatusOr<std::pair<int64_t, int64_t>> LastAttempts() = 0;
};

}  // namespace fusion
