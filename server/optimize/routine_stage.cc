#include "server/optimize/routine_stage.h"

#include <spdlog/spdlog.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/optimize/routine_measurement.h"

namespace fusion {
namespace {

RoutineTablesKey KeyOf(const DeviceDescription& device) {
  return {.device_class = device.name(), .toolkit = device.toolkit_version()};
}

// Returns the source hash of the function whose routine it is; empty for loads and stores, which have none.
std::string SourceHash(const Catalog& catalog, const std::string& routine) {
  const ElementaryFunction* function = catalog.FindByRoutine(routine.substr(0, routine.find('<')));
  return function == nullptr ? "" : function->source_hash;
}

absl::Status AddStored(const RoutineTableRecord& record, const RoutineTablesKey& key, RoutineTables* tables) {
  v1::RoutineTable table;
  if (!table.ParseFromString(record.content)) return absl::DataLossError("it cannot be read");
  if (table.device_class() != key.device_class || table.toolkit() != key.toolkit ||
      table.routine() != record.routine)
    return absl::DataLossError("it says that it is of another routine, device or toolkit");
  return tables->Add(table);
}

}  // namespace

absl::StatusOr<RoutineTables> StoredRoutineTables(const DeviceDescription& device, const Catalog& catalog,
                                                  MeasurementStore& store, std::vector<std::string>* notes) {
  const RoutineTablesKey key = KeyOf(device);
  FUSION_ASSIGN_OR_RETURN(auto stored, store.RoutineTables(key));
  std::erase_if(stored, [&](const RoutineTableRecord& record) {
    return record.source_hash != SourceHash(catalog, record.routine);
  });
  RoutineTables tables;
  std::string first;
  int refused = 0;
  for (const RoutineTableRecord& record : stored)
    if (auto status = AddStored(record, key, &tables); !status.ok()) {
      spdlog::warn("a stored table of routine times is refused ({}): {}", record.routine,
                   std::string(status.message()));
      if (++refused == 1) first = absl::StrCat(record.routine, ": ", status.message());
    }
  if (refused > 0)
    notes->push_back(absl::StrCat("stored tables of routine times: ", refused, " of ", stored.size(),
                                  " refused (", first,
                                  "); `fusion-client library bench` measures them again"));
  return tables;
}

absl::StatusOr<v1::RoutineTables> MeasureRoutines(const Submission& submission,
                                                  const DeviceDescription& device, const RoutineTables& known,
                                                  const PipelineContext& context) {
  const auto start = std::chrono::steady_clock::now();
  const RoutineTablesKey key = KeyOf(device);
  std::vector<std::string> notes;
  FUSION_ASSIGN_OR_RETURN(auto measured, MeasureRoutineSources(RoutineSourcesOf(*submission.graph), device,
                                                               known, context, &notes));
  v1::RoutineTables result;
  result.set_known(measured.known);
  const auto now = TimeOfDay();
  for (v1::RoutineTable& table : measured.tables) {
    table.set_version(kRoutineTableVersion);
    table.set_device_class(key.device_class);
    table.set_toolkit(key.toolkit);
    FUSION_RETURN_IF_ERROR(context.store.PutRoutineTable(
        key,
        {table.routine(), SourceHash(submission.graph->catalog(), table.routine()),
         table.SerializeAsString()},
        now));
    *result.add_tables() = std::move(table);
  }
  result.set_measured(result.tables_size());
  for (const std::string& note : notes) result.add_notes(note);
  result.set_seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return result;
}

}  // namespace fusion
