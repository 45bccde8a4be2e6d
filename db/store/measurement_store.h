// Measurements, benchmark tables, and what predictions learned from them. Rules for all calls:
// db/store/store.h.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/store/records.h"

namespace fusion {

class MeasurementStore {
 public:
  virtual ~MeasurementStore() = default;

  // Adds all of them in one transaction.
  virtual absl::Status AddMeasurements(const std::vector<MeasurementRecord>& measurements) = 0;
  // Adds or replaces the value of (device class, driver, library, quantity, parameter).
  virtual absl::Status PutDeviceBenchmark(const DeviceBenchmarkRecord& benchmark) = 0;
  // Returns all values of a device class and driver (empty: of any), by driver, library, quantity and
  // parameter.
  virtual absl::StatusOr<std::vector<DeviceBenchmarkRecord>> DeviceBenchmarks(const std::string& device_class,
                                                                              const std::string& driver) = 0;

  // Returns the statistics of the model for the key; empty: none yet.
  virtual absl::StatusOr<std::string> ModelStatistics(const ModelStatisticsKey& key) = 0;
  // Replaces the statistics by what `change` makes of them (empty: none yet); no other change comes between.
  // `change` must not call the store.
  virtual absl::Status UpdateModelStatistics(
      const ModelStatisticsKey& key, const std::function<std::string(const std::string& statistics)>& change,
      Timestamp now) = 0;

  // Replaces the table of the routine.
  virtual absl::Status PutRoutineTable(const RoutineTablesKey& key, const RoutineTableRecord& table,
                                       Timestamp now) = 0;
  // Returns the tables by routine.
  virtual absl::StatusOr<std::vector<RoutineTableRecord>> RoutineTables(const RoutineTablesKey& key) = 0;

  // Returns, in order, the device classes of which measured kernels, statistics of the model or tables of
  // routine times are stored.
  virtual absl::StatusOr<std::vector<std::string>> ModelDevices() = 0;
  // Removes all these kernels, statistics and tables of a class (empty: of all classes), whatever state of
  // the caches, library, toolkit and version they are of; all or nothing.
  virtual absl::StatusOr<ForgottenModel> ForgetModel(const std::string& device_class) = 0;

  // Returns, in order, the families of which there are measured kernels.
  virtual absl::StatusOr<std::vector<std::string>> KernelFamilies(const KernelTimesKey& key) = 0;
  // Returns the kernels of the family, newest first, at most `limit`.
  virtual absl::StatusOr<std::vector<KernelTimeRecord>> KernelTimes(const KernelTimesKey& key,
                                                                    const std::string& family, int limit) = 0;
  // Replaces the contents of the kernels by what `change` makes of them: `change` is given the records with
  // their contents, as far as they are known, and leaves empty what is not to be stored. No other change
  // comes between; `change` must not call the store. Then the oldest kernels of all are removed until `most`
  // are left.
  virtual absl::Status UpdateKernelTimes(const KernelTimesKey& key, std::vector<KernelTimeRecord> kernels,
                                         const std::function<void(std::vector<KernelTimeRecord>*)>& change,
                                         int64_t most, Timestamp now) = 0;
};

}  // namespace fusion
