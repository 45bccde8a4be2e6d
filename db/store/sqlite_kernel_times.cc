// Measured times of kernels.
#include <utility>

#include "db/store/sqlite_store.h"

namespace fusion {

absl::StatusOr<std::vector<std::string>> SqliteStore::KernelFamilies(const KernelTimesKey& key) {
  Reader reader(*this);
  std::vector<std::string> families;
  Statement rows = reader->Query(
      "SELECT DISTINCT family FROM kernel_times WHERE device_class = ?1 AND cache = ?2 AND toolkit = ?3 "
      "ORDER BY family",
      key.device_class, key.cache, key.toolkit);
  absl::Status read = rows.ForEach([&] { families.push_back(rows.Text(0)); });
  if (!read.ok()) return read;
  return families;
}

absl::StatusOr<std::vector<KernelTimeRecord>> SqliteStore::KernelTimes(const KernelTimesKey& key,
                                                                       const std::string& family, int limit) {
  Reader reader(*this);
  std::vector<KernelTimeRecord> kernels;
  Statement rows = reader->Query(
      "SELECT sizes, variant, content FROM kernel_times WHERE device_class = ?1 AND cache = ?2 AND "
      "toolkit = ?3 AND family = ?4 ORDER BY updated_micros DESC, sizes, variant LIMIT ?5",
      key.device_class, key.cache, key.toolkit, family, limit);
  absl::Status read = rows.ForEach([&] {
    kernels.push_back({family, rows.Text(0), rows.Text(1), rows.Text(2)});
  });
  if (!read.ok()) return read;
  return kernels;
}

absl::Status SqliteStore::UpdateKernelTimes(const KernelTimesKey& key, std::vector<KernelTimeRecord> kernels,
                                            const std::function<void(std::vector<KernelTimeRecord>*)>& change,
                                            int64_t most, Timestamp now) {
  return Write([&](Database& database) -> absl::Status {
    std::vector<KernelTimeRecord> records = kernels;  // of this try; there may be another
    for (KernelTimeRecord& record : records) {
      record.content.clear();
      Statement rows = database.Query(
          "SELECT content FROM kernel_times WHERE device_class = ?1 AND cache = ?2 AND toolkit = ?3 AND "
          "family = ?4 AND sizes = ?5 AND variant = ?6",
          key.device_class, key.cache, key.toolkit, record.family, record.sizes, record.variant);
      absl::Status read = rows.ForEach([&] { record.content = rows.Text(0); });
      if (!read.ok()) return read;
    }
    change(&records);
    for (const KernelTimeRecord& record : records) {
      if (record.content.empty()) continue;
      absl::Status written = database
                                 .Query(
                                     "INSERT OR REPLACE INTO kernel_times (device_class, cache, "
                                     "toolkit, family, sizes, variant, "
                                     "updated_micros, content) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                                     key.device_class, key.cache, key.toolkit, record.family, record.sizes,
                                     record.variant, now, Bytes{record.content})
                                 .Run();
      if (!written.ok()) return written;
    }
    return database
        .Query(
            "DELETE FROM kernel_times WHERE (device_class, cache, toolkit, family, sizes, "
            "variant) IN "
            "(SELECT device_class, cache, toolkit, family, sizes, variant FROM kernel_times "
            "ORDER BY updated_micros "
            "LIMIT max(0, (SELECT count(*) FROM kernel_times) - ?1))",
            most)
        .Run();
  });
}

}  // namespace fusion
