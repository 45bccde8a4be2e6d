// Tables of routine times: those that are stored, and what a graph lacks.
#include <chrono>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/service/job_stages.h"
#include "server/service/routine_measurement.h"

namespace fusion {
namespace {

RoutineTablesKey KeyOf(const DeviceDescription& device, const Catalog& catalog) {
  return {.device_class = device.name(), .library_hash = catalog.hash(), .toolkit = device.toolkit_version()};
}

// The stored tables that can be used. Those that cannot are said to be refused.
absl::StatusOr<std::vector<v1::RoutineTable>> UsableTables(const RoutineTablesKey& key, Store& store, std::vector<std::string>* notes) {
  auto stored = store.RoutineTables(key);
  if (!stored.ok()) return stored.status();
  std::vector<v1::RoutineTable> usable;
  std::string first;
  int refused = 0;
  for (const RoutineTableRecord& record : *stored) {
    v1::RoutineTable table;
    absl::Status status;
    if (!table.ParseFromString(record.content))
      status = absl::DataLossError("it cannot be read");
    else if (table.device_class() != key.device_class || table.library_hash() != key.library_hash || table.toolkit() != key.toolkit ||
             table.routine() != record.routine)
      status = absl::DataLossError("it says that it is of another routine, device, library or toolkit");
    else
      status = RoutineTables().Add(table);
    if (status.ok()) {
      usable.push_back(std::move(table));
    } else if (++refused == 1) {
      first = absl::StrCat(record.routine, ": ", status.message());
    }
  }
  if (refused > 0)
    notes->push_back(absl::StrCat("stored tables of routine times: ", refused, " of ", stored->size(), " refused (", first,
                                  "); `fusion-client library bench` measures them again"));
  return usable;
}

}  // namespace

absl::StatusOr<RoutineTables> StoredRoutineTables(const DeviceDescription& device, const Catalog& catalog, Store& store,
                                                  std::vector<std::string>* notes) {
  auto usable = UsableTables(KeyOf(device, catalog), store, notes);
  if (!usable.ok()) return usable.status();
  RoutineTables tables;
  for (const v1::RoutineTable& table : *usable)
    if (auto status = tables.Add(table); !status.ok()) return status;
  return tables;
}

absl::StatusOr<v1::RoutineTables> MeasureRoutines(const Submission& submission, const DeviceDescription& device, bool again,
                                                  const PipelineContext& context) {
  const auto start = std::chrono::steady_clock::now();
  const RoutineTablesKey key = KeyOf(device, *context.catalog);
  std::vector<std::string> notes;
  auto usable = UsableTables(key, context.store, &notes);
  if (!usable.ok()) return usable.status();
  std::set<std::string> present;
  if (!again)
    for (const v1::RoutineTable& table : *usable) present.insert(table.routine());

  auto measured = MeasureRoutineSources(RoutineSourcesOf(*submission.graph), device, present, context, &notes);
  if (!measured.ok()) return measured.status();
  v1::RoutineTables result;
  result.set_known(measured->known);
  const auto now = std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  for (v1::RoutineTable& table : measured->tables) {
    table.set_version(kRoutineTableVersion);
    table.set_device_class(key.device_class);
    table.set_library_hash(key.library_hash);
    table.set_toolkit(key.toolkit);
    auto status = context.store.PutRoutineTable(key, {table.routine(), table.SerializeAsString()}, now);
    if (!status.ok()) return status;
    *result.add_tables() = std::move(table);
  }
  result.set_measured(result.tables_size());
  for (const std::string& note : notes) result.add_notes(note);
  result.set_seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return result;
}

}  // namespace fusion
