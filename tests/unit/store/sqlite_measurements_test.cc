// Measurements are for people's queries: the program adds them and never reads them.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "db/store/sqlite_database.h"
#include "tests/unit/store/store_fixture.h"

namespace fusion {
namespace {

using SqliteMeasurementsTest = StoreTest;

MeasurementRecord Measurement() {
  MeasurementRecord m;
  m.job = "jobs/1";
  m.candidate_key = "candidate";
  m.graph_hash = "hash";
  m.sizes = "m=4093,n=5001";
  m.device_class = "NVIDIA H200";
  m.device_uuid = "GPU-1";
  m.arch = "sm_90";
  m.driver = "570";
  m.toolkit = "12.8";
  m.library_hash = "library";
  m.method_version = 3;
  m.outcome = "OK";
  m.cache = "WARM";
  m.median_seconds = 1e-4;
  m.low_seconds = 0.9e-4;
  m.high_seconds = 1.1e-4;
  m.raw = std::string("\0samples", 8);
  m.conditions = "cool";
  m.created = At(5);
  return m;
}

TEST_F(SqliteMeasurementsTest, HaveEveryFieldAsAColumn) {
  ASSERT_TRUE(store_->AddMeasurements({Measurement(), Measurement()}).ok());
  auto database = Database::Open(path_, Database::Mode::kReadOnly, std::chrono::seconds(5));
  ASSERT_TRUE(database.ok()) << database.status();
  Statement rows = (*database)->Query(
      "SELECT job, candidate_key, graph_hash, sizes, device_class, device_uuid, arch, driver, toolkit, "
      "library_hash, method_version, outcome, cache, median_seconds, low_seconds, high_seconds, raw, "
      "conditions, created_micros FROM measurements ORDER BY number");
  const MeasurementRecord m = Measurement();
  int count = 0;
  const absl::Status read = rows.ForEach([&] {
    ++count;
    int column = 0;
    for (const std::string& text : {m.job, m.candidate_key, m.graph_hash, m.sizes, m.device_class,
                                    m.device_uuid, m.arch, m.driver, m.toolkit, m.library_hash})
      EXPECT_EQ(rows.Text(column++), text);
    EXPECT_EQ(rows.Int(10), m.method_version);
    EXPECT_EQ(rows.Text(11), m.outcome);
    EXPECT_EQ(rows.Text(12), m.cache);
    EXPECT_EQ(rows.Real(13), m.median_seconds);
    EXPECT_EQ(rows.Real(14), m.low_seconds);
    EXPECT_EQ(rows.Real(15), m.high_seconds);
    EXPECT_EQ(rows.Text(16), m.raw);
    EXPECT_EQ(rows.Text(17), m.conditions);
    EXPECT_EQ(rows.Time(18), m.created);
  });
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_EQ(count, 2);
}

}  // namespace
}  // namespace fusion
