// These calls treat all that predictions are made of together.
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "db/store/sqlite_store.h"

namespace fusion {

absl::StatusOr<std::vector<std::string>> SqliteStore::ModelDevices() {
  Reader reader(*this);
  std::vector<std::string> devices;
  Statement rows = reader->Query(
      "SELECT device_class FROM kernel_times UNION SELECT device_class FROM model_statistics UNION "
      "SELECT device_class FROM routine_tables ORDER BY device_class");
  absl::Status read = rows.ForEach([&] { devices.push_back(rows.Text(0)); });
  if (!read.ok()) return read;
  return devices;
}

absl::StatusOr<ForgottenModel> SqliteStore::ForgetModel(const std::string& device_class) {
  return Write([&](Database& database) -> absl::StatusOr<ForgottenModel> {
    ForgottenModel forgotten;
    const std::pair<const char*, int64_t*> tables[] = {
        {"DELETE FROM kernel_times WHERE ?1 = '' OR device_class = ?1", &forgotten.kernel_times},
        {"DELETE FROM model_statistics WHERE ?1 = '' OR device_class = ?1", &forgotten.statistics},
        {"DELETE FROM routine_tables WHERE ?1 = '' OR device_class = ?1", &forgotten.routine_tables}};
    for (const auto& [sql, count] : tables) {
      FUSION_RETURN_IF_ERROR(database.Query(sql, device_class).Run());
      *count = database.changes();
    }
    return forgotten;
  });
}

}  // namespace fusion
