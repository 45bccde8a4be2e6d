// How often routines are repeated until their times stand out, on a GPU that is played: what is built is the
// source itself, which says how often.
#include "server/optimize/routine_measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <regex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "server/optimize/routine_repeats.h"
#include "tests/unit/dispatch/dispatch_fixture.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;

TEST(RoutineRepeatsTest, RoundsBeginLowAndEndAtTheMost) {
  for (int most : {4, 5, 31, 32, 33, 40, 255, 256, 257, 1000, 4000}) {
    const Repeats last{most, 2 * most};
    Repeats repeats = FirstRepeats(last);
    EXPECT_GE(repeats.few, kFewestRepeats) << most;
    EXPECT_LE(repeats.few, std::max(kFewestRepeats, most / 64 + 1)) << most;
    for (int rounds = 1; repeats.few < most; ++rounds) {
      ASSERT_LE(rounds, 2) << most;
      const Repeats next = NextRepeats(repeats, last);
      EXPECT_GT(next.few, repeats.few);
      EXPECT_EQ(next.many, 2 * next.few);
      repeats = next;
    }
    EXPECT_EQ(repeats.few, most);
  }
}

TEST(RoutineRepeatsTest, WhatStandsOut) {
  EXPECT_TRUE(RoutineStandsOut(100e-6, 198e-6));
  EXPECT_FALSE(RoutineStandsOut(111e-6, 203e-6))
      << "100 us each time, beside transfers of 108 and a start of 3";
  EXPECT_FALSE(RoutineStandsOut(5e-6, 10e-6)) << "a clock's step is a tenth of the difference or more";
}

class RoutineMeasurementTest : public DispatchTest {
 protected:
  void TearDown() override {
    stop_ = true;
    if (worker_.joinable()) worker_.join();
    DispatchTest::TearDown();
  }

  // A tile's routine takes so long; loads and stores of all, which run beside it, so long, and the longer,
  // the fewer bytes memory moves a second.
  void StartGpu(double routine_seconds, double transfer_seconds, double bytes_per_second = 1e15) {
    Call(Request("gpu", {}, {device_}));
    worker_ = std::thread([this, routine_seconds, transfer_seconds, bytes_per_second] {
      const auto report_of = [&](const v1::Assignment& assignment) {
        if (assignment.has_build()) return Built(assignment, v1::OK, Upload(assignment.build().source()));
        v1::TaskReport report = Running(assignment);
        *report.mutable_time() =
            Times(assignment.time(), routine_seconds,
                  transfer_seconds + assignment.time().session().floor_bytes() / bytes_per_second);
        return report;
      };
      Work(Request("gpu", {}, {device_}), report_of, stop_);
    });
  }

  v1::TimeResult Times(const v1::TimeTask& task, double routine_seconds, double transfer_seconds) {
    v1::TimeResult result;
    result.mutable_unfused()->set_outcome(v1::OK);
    for (const v1::Launch& launch : task.session().unfused().launches())
      result.mutable_unfused()->add_binaries(launch.binary());
    for (const v1::Program& program : task.programs()) {
      const v1::Launch& launch = program.launches(0);
      const int resident = static_cast<int>(launch.grid() / kMultiprocessors);
      const std::string source = store_->GetBlob(launch.binary()).value_or("");
      std::smatch found;
      v1::ProgramMeasurement* measurement = result.add_programs();
      measurement->set_name(program.name());
      if (!std::regex_search(source, found, std::regex("again < (\\d+);"))) {
        measurement->set_outcome(v1::LAUNCH_ERROR);
        continue;
      }
      const int repeats = std::stoi(found[1]);
      most_repeats_ = std::max(most_repeats_.load(), repeats);
      if (resident <= 4) elements_of_few_ = std::max(elements_of_few_.load(), Elements(task));
      elements_of_all_ = std::max(elements_of_all_.load(), Elements(task));
      if (failing_round_ > 0 && rounds_ >= failing_round_) {
        measurement->set_outcome(v1::WRONG_RESULT);
        continue;
      }
      if (launch.threads() == lost_threads_ && resident == 8) {
        measurement->set_outcome(v1::WORKER_LOST);
        continue;
      }
      const double tiles = static_cast<double>(Elements(task)) / launch.threads();  // one thread, one element
      const double passes = std::ceil(tiles / (double{kMultiprocessors} * resident));
      measurement->set_outcome(v1::OK);
      for (const v1::Launch& ran : program.launches()) measurement->add_binaries(ran.binary());
      measurement->mutable_cold()->set_median(3e-6 +
                                              std::max(transfer_seconds, passes * repeats * routine_seconds));
      measurement->mutable_cold()->set_samples(3);
      measurement->add_kernels()->set_blocks_per_multiprocessor(resident);
    }
    return result;
  }

  static int64_t Elements(const v1::TimeTask& task) {
    for (const v1::LaunchArgument& argument : task.programs(0).launches(0).arguments())
      if (argument.has_integer()) return argument.integer();
    ADD_FAILURE() << "no number of elements: " << task.programs(0).ShortDebugString();
    return 1;
  }

  std::vector<v1::RoutineTable> Measure(const char* text = kSquare) {
    const std::string job = NewJob();
    const PipelineContext context{*store_,
                                  *dispatcher_,
                                  searches_,
                                  *Catalog::BuiltIn(),
                                  job,
                                  CancellationToken(),
                                  [&](const v1::JobEvent& event) {
                                    rounds_ +=
                                        event.has_build() && event.build().done() == event.build().total();
                                  },
                                  ""};
    auto measured = MeasureRoutineSources({{text, false}}, device_, RoutineTables(), context, &notes_);
    EXPECT_TRUE(measured.ok()) << measured.status();
    return measured.ok() ? measured->tables : std::vector<v1::RoutineTable>();
  }

  static void ExpectTables(const std::vector<v1::RoutineTable>& tables, double seconds) {
    EXPECT_FALSE(tables.empty());
    for (const v1::RoutineTable& table : tables) {
      std::set<int> residents;
      for (const v1::RoutineTable::Point& point : table.points()) {
        residents.insert(point.resident_blocks());
        if (point.threads() != point.elements()) continue;
        EXPECT_NEAR(point.seconds(), seconds, 0.06 * seconds)
            << table.routine() << ": " << point.ShortDebugString();
      }
      EXPECT_THAT(residents, IsSupersetOf({1, 2, 4, 8})) << table.routine();
    }
  }

  static constexpr char kSquare[] = "SCALAR x, y;\ninput x;\ny = square(x);\nreturn y;\n";
  static constexpr char kProduct[] = "MATRIX5x5 A, B, y;\ninput A, B;\ny = mmul(A, B);\nreturn y;\n";
  static constexpr int kMultiprocessors = 132;
  v1::DeviceDescription device_ = [] {
    v1::DeviceDescription device = CudaDevice();
    device.set_multiprocessors(kMultiprocessors);
    device.set_peak_flops(6e13);
    return device;
  }();
  SearchPool searches_{SearchLimits()};
  std::vector<std::string> notes_;
  std::atomic<int> most_repeats_ = 0, rounds_ = 0;
  std::atomic<int64_t> elements_of_few_ = 0, elements_of_all_ = 0;
  int lost_threads_ = 0;   // of blocks with which a worker is lost, where there are eight; 0: none
  int failing_round_ = 0;  // from which on results are wrong; 0: none
  std::atomic<bool> stop_ = false;
  std::thread worker_;
};

// Long routines are measured with the fewest repeats, and once.
TEST_F(RoutineMeasurementTest, LongRoutinesAreRepeatedSeldom) {
  StartGpu(/*routine_seconds=*/1e-4, /*transfer_seconds=*/1e-5);
  ExpectTables(Measure(), 1e-4);
  EXPECT_LE(most_repeats_, 2 * (4000 / 64 + 1));
  EXPECT_EQ(rounds_, 1);
  EXPECT_LE(4 * elements_of_few_, elements_of_all_) << "grids of few blocks pass over few elements";
}

// Short ones until they outweigh what runs beside them, which is not taken for a part of them.
TEST_F(RoutineMeasurementTest, ShortRoutinesAreRepeatedUntilTheyOutweighTransfers) {
  StartGpu(/*routine_seconds=*/2e-8, /*transfer_seconds=*/2e-5);
  ExpectTables(Measure(), 2e-8);
  EXPECT_GT(rounds_, 1);
}

// Memory that is slower than it is said to be hides no part of them either.
TEST_F(RoutineMeasurementTest, RoutinesAtThePeakOutweighSlowMemory) {
  StartGpu(/*routine_seconds=*/1e-6, /*transfer_seconds=*/0, device_.copy_bytes_per_second() / 3);
  ExpectTables(Measure(kProduct), 1e-6);
}

// What was hidden in one round and failed from then on is not taken for a time.
TEST_F(RoutineMeasurementTest, TimesThatDoNotStandOutAreNotKept) {
  failing_round_ = 2;
  StartGpu(/*routine_seconds=*/1e-7, /*transfer_seconds=*/3e-5);
  const std::vector<v1::RoutineTable> tables = Measure();
  EXPECT_FALSE(tables.empty()) << "grids of few blocks stand out in the first round";
  for (const v1::RoutineTable& table : tables)
    for (const v1::RoutineTable::Point& point : table.points()) {
      if (point.threads() != point.elements()) continue;
      EXPECT_NEAR(point.seconds(), 1e-7, 0.06 * 1e-7) << table.routine() << ": " << point.ShortDebugString();
    }
  EXPECT_GT(rounds_, 1);
  EXPECT_THAT(notes_, Contains(HasSubstr("wrong results")));
}

// A routine of which a worker's fault took a part is measured again by the next job, as if it were not known.
TEST_F(RoutineMeasurementTest, WhatIsLostWithAWorkerLeavesNoTable) {
  lost_threads_ = 128;  // of kernels with a thread for each entry alone
  StartGpu(/*routine_seconds=*/1e-4, /*transfer_seconds=*/1e-5);
  const std::vector<v1::RoutineTable> tables = Measure();
  EXPECT_FALSE(tables.empty());
  for (const v1::RoutineTable& table : tables) EXPECT_THAT(table.routine(), Not(HasSubstr("entry")));
  EXPECT_THAT(notes_, Contains(AllOf(HasSubstr("no times of square_map"), HasSubstr("entry"))));
}

// Of what never takes any time rounds end, and there is no table.
TEST_F(RoutineMeasurementTest, RoundsEnd) {
  StartGpu(/*routine_seconds=*/1e-12, /*transfer_seconds=*/1e-3);
  EXPECT_THAT(Measure(), IsEmpty());
  EXPECT_GT(rounds_, 2);
  EXPECT_THAT(notes_, Contains(HasSubstr("no times of square_map")));
}

}  // namespace
}  // namespace fusion
