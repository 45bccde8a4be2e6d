#include <string>
#include <thread>
#include <vector>

#include "tests/unit/store_conformance/store_conformance.h"

namespace fusion {
namespace {

class MeasurementsTest : public StoreConformanceTest {};

TEST_P(MeasurementsTest, DevicesAreKeptByUuid) {
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

TEST_P(MeasurementsTest, ABenchmarkIsReplacedByItsSuccessorAndByNothingElse) {
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

TEST_P(MeasurementsTest, ModelStatisticsAreOfTheirDevicesCacheAndVersion) {
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

TEST_P(MeasurementsTest, NoChangeOfModelStatisticsIsLost) {
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

TEST_P(MeasurementsTest, RoutineTablesAreOfTheirDeviceToolkitAndSource) {
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

FOR_EVERY_STORE(MeasurementsTest);

}  // namespace
}  // namespace fusion
