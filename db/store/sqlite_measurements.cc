// Measurements, devices and benchmark tables.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "db/store/sqlite_store.h"

namespace fusion {
namespace {

absl::StatusOr<std::string> ReadModelStatistics(Database& database, const ModelStatisticsKey& key) {
  std::string statistics;
  Statement rows = database.Query(
      "SELECT statistics FROM model_statistics WHERE device_class = ?1 AND cache = ?2 AND model_version = ?3",
      key.device_class, key.cache, key.model_version);
  absl::Status read = rows.ForEach([&] { statistics = rows.Text(0); });
  if (!read.ok()) return read;
  return statistics;
}

}  // namespace

absl::Status SqliteStore::AddMeasurements(const std::vector<MeasurementRecord>& measurements) {
  return Write([&](Database& database) -> absl::Status {
    for (const MeasurementRecord& m : measurements) {
      absl::Status inserted =
          database
              .Query(
                  "INSERT INTO measurements (job, candidate_key, graph_hash, sizes, device_class, "
                  "device_uuid, arch, "
                  "driver, toolkit, library_hash, method_version, outcome, median_seconds, low_seconds, "
                  "high_seconds, created_micros, conditions, raw, cache) "
                  "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, "
                  "?19)",
                  m.job, m.candidate_key, m.graph_hash, m.sizes, m.device_class, m.device_uuid, m.arch,
                  m.driver, m.toolkit, m.library_hash, m.method_version, m.outcome, m.median_seconds,
                  m.low_seconds, m.high_seconds, m.created, Bytes{m.conditions}, Bytes{m.raw}, m.cache)
              .Run();
      if (!inserted.ok()) return inserted;
    }
    return absl::OkStatus();
  });
}

absl::Status SqliteStore::UpsertDevice(const DeviceRecord& device) {
  if (device.uuid.empty()) return absl::InvalidArgumentError("a device needs a uuid");
  return Write([&](Database& database) {
    return database
        .Query(
            "INSERT OR REPLACE INTO devices (uuid, device_class, last_seen_micros, description) "
            "VALUES (?1, ?2, ?3, ?4)",
            device.uuid, device.device_class, device.last_seen, Bytes{device.description})
        .Run();
  });
}

absl::StatusOr<std::vector<DeviceRecord>> SqliteStore::Devices() {
  Reader reader(*this);
  std::vector<DeviceRecord> devices;
  Statement rows =
      reader->Query("SELECT uuid, device_class, description, last_seen_micros FROM devices ORDER BY uuid");
  absl::Status read = rows.ForEach([&] {
    devices.push_back(DeviceRecord{rows.Text(0), rows.Text(1), rows.Text(2), rows.Time(3)});
  });
  if (!read.ok()) return read;
  return devices;
}

absl::Status SqliteStore::PutDeviceBenchmark(const DeviceBenchmarkRecord& benchmark) {
  return Write([&](Database& database) {
    return database
        .Query(
            "INSERT OR REPLACE INTO device_benchmarks (device_class, driver, library_hash, quantity, "
            "parameter, "
            "value, unit, created_micros) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            benchmark.device_class, benchmark.driver, benchmark.library_hash, benchmark.quantity,
            benchmark.parameter, benchmark.value, benchmark.unit, benchmark.created)
        .Run();
  });
}

absl::StatusOr<std::vector<DeviceBenchmarkRecord>> SqliteStore::DeviceBenchmarks(
    const std::string& device_class, const std::string& driver) {
  Reader reader(*this);
  std::vector<DeviceBenchmarkRecord> benchmarks;
  Statement rows = reader->Query(
      "SELECT device_class, driver, library_hash, quantity, parameter, value, unit, created_micros "
      "FROM device_benchmarks WHERE device_class = ?1 AND (?2 = '' OR driver = ?2) "
      "ORDER BY driver, library_hash, quantity, parameter",
      device_class, driver);
  absl::Status read = rows.ForEach([&] {
    benchmarks.push_back(DeviceBenchmarkRecord{rows.Text(0), rows.Text(1), rows.Text(2), rows.Text(3),
                                               rows.Text(4), rows.Real(5), rows.Text(6), rows.Time(7)});
  });
  if (!read.ok()) return read;
  return benchmarks;
}

absl::StatusOr<std::string> SqliteStore::ModelStatistics(const ModelStatisticsKey& key) {
  Reader reader(*this);
  return ReadModelStatistics(*reader, key);
}

absl::Status SqliteStore::UpdateModelStatistics(const ModelStatisticsKey& key,
                                                const std::function<std::string(const std::string&)>& change,
                                                Timestamp now) {
  return Write([&](Database& database) -> absl::Status {
    FUSION_ASSIGN_OR_RETURN(std::string present, ReadModelStatistics(database, key));
    const std::string changed = change(present);
    return database
        .Query(
            "INSERT OR REPLACE INTO model_statistics (device_class, cache, model_version, statistics, "
            "updated_micros) VALUES (?1, ?2, ?3, ?4, ?5)",
            key.device_class, key.cache, key.model_version, Bytes{changed}, now)
        .Run();
  });
}

absl::Status SqliteStore::PutRoutineTable(const RoutineTablesKey& key, const RoutineTableRecord& table,
                                          Timestamp now) {
  return Write([&](Database& database) {
    return database
        .Query(
            "INSERT OR REPLACE INTO routine_tables (device_class, toolkit, routine, source_hash, content, "
            "created_micros) "
            "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            key.device_class, key.toolkit, table.routine, table.source_hash, Bytes{table.content}, now)
        .Run();
  });
}

absl::StatusOr<std::vector<RoutineTableRecord>> SqliteStore::RoutineTables(const RoutineTablesKey& key) {
  Reader reader(*this);
  std::vector<RoutineTableRecord> tables;
  Statement rows = reader->Query(
      "SELECT routine, source_hash, content FROM routine_tables WHERE device_class = ?1 AND toolkit = ?2 "
      "ORDER BY routine, source_hash",
      key.device_class, key.toolkit);
  absl::Status read = rows.ForEach([&] { tables.push_back({rows.Text(0), rows.Text(1), rows.Text(2)}); });
  if (!read.ok()) return read;
  return tables;
}

}  // namespace fusion
