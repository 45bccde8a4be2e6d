#include "server/model/routine_tables.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace fusion {
namespace {

v1::RoutineTable Table() {
  v1::RoutineTable table;
  table.set_version(kRoutineTableVersion);
  table.set_routine("mmul_row<f32,3,3,3> shared");
  // Seconds = elements * 10 + resident, of blocks of 128; one point of blocks of 64.
  for (int elements : {16, 32, 64})
    for (int resident : {1, 4}) {
      if (elements == 64 && resident == 4) continue;  // does not fit
      v1::RoutineTable::Point* point = table.add_points();
      point->set_threads(128);
      point->set_elements(elements);
      point->set_resident_blocks(resident);
      point->set_seconds(elements * 10 + resident);
    }
  v1::RoutineTable::Point* point = table.add_points();
  point->set_threads(64);
  point->set_elements(64);
  point->set_resident_blocks(2);
  point->set_seconds(5);
  return table;
}

TEST(RoutineTables, AreLinearBetweenPointsAndExtendedOnlyToMoreBlocks) {
  RoutineTables tables;
  ASSERT_TRUE(tables.Add(Table()).ok());
  const std::string routine = "mmul_row<f32,3,3,3> shared";
  EXPECT_TRUE(tables.Has(routine));
  const auto expect = [&](int threads, int elements, double resident, double seconds, bool extended) {
    const auto time = tables.Time(routine, threads, elements, resident);
    ASSERT_TRUE(time.has_value()) << threads << " " << elements << " " << resident;
    EXPECT_DOUBLE_EQ(time->seconds, seconds);
    EXPECT_EQ(time->extended, extended);
  };
  expect(128, 16, 1, 161, false);
  expect(128, 16, 2.5, 162.5, false);
  expect(128, 24, 1, 241, false);
  expect(128, 20, 4, 204, false);
  expect(128, 64, 1, 641, false);
  expect(64, 64, 2, 5, false);
  expect(128, 16, 8, 168, true);
  expect(128, 24, 6, 246, true);
  const auto nothing = [&](int threads, int elements, double resident) {
    EXPECT_FALSE(tables.Time(routine, threads, elements, resident).has_value())
        << threads << " " << elements << " " << resident;
  };
  expect(128, 16, 16, 176, true);
  nothing(128, 16, 16.5);  // too far
  nothing(128, 64, 2);     // one point makes no line
  nothing(128, 48, 2);     // beside a tile that has no such point
  nothing(128, 8, 1);      // smaller than any tile
  nothing(128, 128, 1);    // larger
  nothing(256, 16, 1);     // other blocks
  nothing(64, 64, 1);      // fewer
  EXPECT_FALSE(tables.Time("mmul_row<f32,4,4,4> shared", 128, 16, 1).has_value());
}

TEST(RoutineTables, MoreBlocksNeverMakeABlockFaster) {
  v1::RoutineTable table = Table();
  for (v1::RoutineTable::Point& point : *table.mutable_points())
    if (point.resident_blocks() == 4) point.set_seconds(100);  // less than alone: noise
  RoutineTables tables;
  ASSERT_TRUE(tables.Add(table).ok());
  EXPECT_DOUBLE_EQ(tables.Time(table.routine(), 128, 16, 8)->seconds, 100);
}

TEST(RoutineTables, AreRefusedWhenTheyCannotBeTrue) {
  const auto refused = [](const std::function<void(v1::RoutineTable*)>& change, const std::string& reason) {
    v1::RoutineTable table = Table();
    change(&table);
    RoutineTables tables;
    const absl::Status status = tables.Add(table);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(std::string(status.message()).find(reason), std::string::npos) << status;
    EXPECT_TRUE(tables.empty());
  };
  refused([](auto* table) { table->set_version(kRoutineTableVersion + 1); }, "version");
  refused([](auto* table) { table->clear_routine(); }, "no routine");
  refused([](auto* table) { table->clear_points(); }, "no points");
  refused([](auto* table) { *table->add_points() = table->points(0); }, "twice");
  refused([](auto* table) { table->mutable_points(1)->set_threads(0); }, "count");
  refused([](auto* table) { table->mutable_points(1)->set_elements(-1); }, "count");
  refused([](auto* table) { table->mutable_points(1)->set_resident_blocks(0); }, "count");
  refused([](auto* table) { table->mutable_points(1)->set_extra_shared_bytes(-1); }, "count");
  for (double seconds :
       {0.0, -1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    refused([&](auto* table) { table->mutable_points(2)->set_seconds(seconds); }, "time");
}

TEST(RoutineTables, AreReplacedByNewerOnes) {
  RoutineTables tables;
  v1::RoutineTable table = Table();
  ASSERT_TRUE(tables.Add(table).ok());
  table.mutable_points()->DeleteSubrange(1, table.points_size() - 1);
  table.mutable_points(0)->set_seconds(7);
  ASSERT_TRUE(tables.Add(table).ok());
  EXPECT_DOUBLE_EQ(tables.Time(table.routine(), 128, 16, 1)->seconds, 7);
  EXPECT_FALSE(tables.Time(table.routine(), 128, 32, 1).has_value());
}

TEST(RoutineTablesTest, OfTwoTimesOfOnePointTheSmallerStands) {
  v1::RoutineTable table;
  v1::RoutineTable::Point point;
  point.set_threads(64);
  point.set_elements(64);
  point.set_resident_blocks(2);
  point.set_seconds(3e-6);
  AddPoint(point, &table);
  point.set_seconds(2e-6);
  AddPoint(point, &table);
  point.set_seconds(4e-6);
  AddPoint(point, &table);
  point.set_resident_blocks(4);
  AddPoint(point, &table);
  ASSERT_EQ(table.points_size(), 2);
  EXPECT_EQ(table.points(0).seconds(), 2e-6);
  EXPECT_EQ(table.points(1).resident_blocks(), 4);
  table.set_version(kRoutineTableVersion);
  table.set_routine("r");
  EXPECT_TRUE(RoutineTables().Add(table).ok());
}

}  // namespace
}  // namespace fusion
