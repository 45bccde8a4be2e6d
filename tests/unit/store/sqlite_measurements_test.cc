#include <string>
#include <thread>
#include <vector>

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

TEST_F(SqliteMeasurementsTest, KeepsEveryField) {
  ASSERT_TRUE(store_->AddMeasurements({Measurement()}).ok());
  Reopen();
  absl::StatusOr<std::vector<MeasurementRecord>> found = store_->FindMeasurements({});
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 1u);
  const MeasurementRecord& m = found->front();
  const MeasurementRecord expected = Measurement();
  EXPECT_EQ(m.job, expected.job);
  EXPECT_EQ(m.cache, expected.cache);
  EXPECT_EQ(m.candidate_key, expected.candidate_key);
  EXPECT_EQ(m.graph_hash, expected.graph_hash);
  EXPECT_EQ(m.sizes, expected.sizes);
  EXPECT_EQ(m.device_class, expected.device_class);
  EXPECT_EQ(m.device_uuid, expected.device_uuid);
  EXPECT_EQ(m.arch, expected.arch);
  EXPECT_EQ(m.driver, expected.driver);
  EXPECT_EQ(m.toolkit, expected.toolkit);
  EXPECT_EQ(m.library_hash, expected.library_hash);
  EXPECT_EQ(m.method_version, expected.method_version);
  EXPECT_EQ(m.outcome, expected.outcome);
  EXPECT_EQ(m.median_seconds, expected.median_seconds);
  EXPECT_EQ(m.low_seconds, expected.low_seconds);
  EXPECT_EQ(m.high_seconds, expected.high_seconds);
  EXPECT_EQ(m.raw, expected.raw);
  EXPECT_EQ(m.conditions, expected.conditions);
  EXPECT_EQ(m.created, expected.created);
}

TEST_F(SqliteMeasurementsTest, EveryFieldOfTheQueryNarrows) {
  // One measurement that differs from the first in each field alone.
  std::vector<MeasurementRecord> all(12, Measurement());
  all[1].candidate_key = "other";
  all[2].graph_hash = "other";
  all[3].sizes = "other";
  all[4].device_class = "other";
  all[5].arch = "other";
  all[6].driver = "other";
  all[7].toolkit = "other";
  all[8].library_hash = "other";
  all[9].method_version = 4;
  all[10].outcome = "FAULT";
  all[11].job = "other";
  ASSERT_TRUE(store_->AddMeasurements(all).ok());

  const MeasurementRecord m = Measurement();
  MeasurementQuery full{.job = m.job,
                        .candidate_key = m.candidate_key,
                        .graph_hash = m.graph_hash,
                        .sizes = m.sizes,
                        .device_class = m.device_class,
                        .device_uuid = m.device_uuid,
                        .arch = m.arch,
                        .driver = m.driver,
                        .toolkit = m.toolkit,
                        .library_hash = m.library_hash,
                        .method_version = m.method_version,
                        .outcome = m.outcome};
  EXPECT_EQ(store_->FindMeasurements(full)->size(), 1u);
  // Leaving one field open lets in the one that differs there.
  using Widen = void (*)(MeasurementQuery&);
  for (Widen widen : std::initializer_list<Widen>{
           [](MeasurementQuery& q) { q.job.clear(); }, [](MeasurementQuery& q) { q.candidate_key.clear(); },
           [](MeasurementQuery& q) { q.graph_hash.clear(); }, [](MeasurementQuery& q) { q.sizes.clear(); },
           [](MeasurementQuery& q) { q.device_class.clear(); }, [](MeasurementQuery& q) { q.arch.clear(); },
           [](MeasurementQuery& q) { q.driver.clear(); }, [](MeasurementQuery& q) { q.toolkit.clear(); },
           [](MeasurementQuery& q) { q.library_hash.clear(); },
           [](MeasurementQuery& q) { q.method_version = 0; },
           [](MeasurementQuery& q) { q.outcome.clear(); }}) {
    MeasurementQuery query = full;
    widen(query);
    EXPECT_EQ(store_->FindMeasurements(query)->size(), 2u);
  }
  EXPECT_EQ(store_->FindMeasurements({})->size(), all.size());
}

TEST_F(SqliteMeasurementsTest, NewestComeFirst) {
  std::vector<MeasurementRecord> all(3, Measurement());
  for (int i = 0; i < 3; ++i) all[i].median_seconds = i;
  ASSERT_TRUE(store_->AddMeasurements(all).ok());
  MeasurementQuery query;
  query.limit = 2;
  absl::StatusOr<std::vector<MeasurementRecord>> found = store_->FindMeasurements(query);
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].median_seconds, 2);
  EXPECT_EQ((*found)[1].median_seconds, 1);
  EXPECT_GT((*found)[0].number, (*found)[1].number);
}

TEST_F(SqliteMeasurementsTest, DevicesAreKeptByUuid) {
  ASSERT_TRUE(store_->UpsertDevice({"GPU-2", "NVIDIA H200", "old", At(1)}).ok());
  ASSERT_TRUE(store_->UpsertDevice({"GPU-1", "NVIDIA H100", "d1", At(2)}).ok());
  ASSERT_TRUE(store_->UpsertDevice({"GPU-2", "NVIDIA H200", "new", At(3)}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(store_->UpsertDevice({"", "NVIDIA H200", "d", At(3)})));
  absl::StatusOr<std::vector<DeviceRecord>> devices = store_->Devices();
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 2u);
  EXPECT_EQ((*devices)[0].uuid, "GPU-1");
  EXPECT_EQ((*devices)[1].description, "new");
  EXPECT_EQ((*devices)[1].last_seen, At(3));
}

TEST_F(SqliteMeasurementsTest, ABenchmarkIsReplacedByItsSuccessorAndByNothingElse) {
  const DeviceBenchmarkRecord bandwidth{"H200", "570",          "",   "copy_bandwidth", "bytes=1",
                                        4.2e12, "bytes/second", At(1)};
  DeviceBenchmarkRecord newer = bandwidth, other_driver = bandwidth, other_parameter = bandwidth,
                        other_class = bandwidth;
  newer.value = 4.3e12;
  newer.created = At(2);
  other_driver.driver = "580";
  other_parameter.parameter = "bytes=2";
  other_class.device_class = "H100";
  for (const DeviceBenchmarkRecord& b : {bandwidth, other_driver, other_parameter, other_class, newer}) {
    ASSERT_TRUE(store_->PutDeviceBenchmark(b).ok());
  }
  absl::StatusOr<std::vector<DeviceBenchmarkRecord>> found = store_->DeviceBenchmarks("H200", "570");
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].parameter, "bytes=1");
  EXPECT_EQ((*found)[0].value, 4.3e12);
  EXPECT_EQ((*found)[0].unit, "bytes/second");
  EXPECT_EQ((*found)[0].created, At(2));
  EXPECT_EQ((*found)[1].parameter, "bytes=2");
  EXPECT_EQ(store_->DeviceBenchmarks("H200", "")->size(), 3u);
}

TEST_F(SqliteMeasurementsTest, ModelStatisticsAreOfTheirDevicesCacheAndVersion) {
  const ModelStatisticsKey key{.device_class = "H200", .cache = "COLD", .model_version = 1};
  EXPECT_EQ(*store_->ModelStatistics(key), "");
  const auto set = [&](const ModelStatisticsKey& which, const std::string& text) {
    return store_->UpdateModelStatistics(
        which, [&](const std::string&) { return text; }, At(1));
  };
  ASSERT_TRUE(set(key, std::string("\0one", 4)).ok());
  ASSERT_TRUE(set({.device_class = "H100", .cache = "COLD", .model_version = 1}, "two").ok());
  ASSERT_TRUE(set({.device_class = "H200", .cache = "WARM", .model_version = 1}, "three").ok());
  ASSERT_TRUE(set({.device_class = "H200", .cache = "COLD", .model_version = 2}, "four").ok());
  Reopen();
  EXPECT_EQ(*store_->ModelStatistics(key), std::string("\0one", 4));
  EXPECT_EQ(*store_->ModelStatistics({.device_class = "H200", .cache = "WARM", .model_version = 1}), "three");
}

TEST_F(SqliteMeasurementsTest, NoChangeOfModelStatisticsIsLost) {
  const ModelStatisticsKey key{.device_class = "H200", .cache = "COLD", .model_version = 1};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i)
        EXPECT_TRUE(store_
                        ->UpdateModelStatistics(
                            key, [](const std::string& old) { return old + "x"; }, At(1))
                        .ok());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*store_->ModelStatistics(key), std::string(100, 'x'));
}

TEST_F(SqliteMeasurementsTest, RoutineTablesAreOfTheirDeviceToolkitAndSource) {
  const RoutineTablesKey key{.device_class = "H200", .toolkit = "13.0"};
  EXPECT_TRUE(store_->RoutineTables(key)->empty());
  const auto put = [&](const RoutineTablesKey& to, RoutineTableRecord table) {
    ASSERT_TRUE(store_->PutRoutineTable(to, table, At(1)).ok());
  };
  put(key, {"b", "1", std::string("\0old", 4)});
  put(key, {"b", "1", std::string("\0new", 4)});
  put(key, {"b", "2", "of another source"});
  put(key, {"a", "", "one"});
  put({.device_class = "H100", .toolkit = "13.0"}, {"a", "", "2"});
  put({.device_class = "H200", .toolkit = "12.8"}, {"a", "", "4"});
  Reopen();
  const auto tables = store_->RoutineTables(key);
  ASSERT_TRUE(tables.ok());
  std::vector<std::string> texts;
  for (const RoutineTableRecord& table : *tables)
    texts.push_back(table.routine + "|" + table.source_hash + "|" + table.content);
  EXPECT_THAT(texts, ::testing::ElementsAre("a||one", std::string("b|1|\0new", 8), "b|2|of another source"));
}

}  // namespace
}  // namespace fusion
