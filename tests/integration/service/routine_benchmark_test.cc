// Benchmarks of routines on the host, by a server and a worker in this process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "db/store/store.h"
#include "library/catalog/catalog.h"
#include "server/parse/parse.h"
#include "server/skeletons/element/routine_times.h"
#include "tests/integration/service/embedded_fixture.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kSource[] = "SCALAR x, y;\ninput x;\ny = square(x);\nreturn y;\n";

// A load is known with its store alone: one of the two may have been lost in the noise.
bool NeedsNoMeasuring(absl::string_view routine, const std::set<std::string>& stored) {
  if (absl::StartsWith(routine, "store ")) return false;
  return !absl::ConsumePrefix(&routine, "load ") || stored.count(absl::StrCat("store ", routine)) > 0;
}

class RoutineBenchmarkTest : public EmbeddedTest {
 protected:
  v1::JobResult Run(v1::SubmitRequest request) {
    request.mutable_source()->set_fuse(kSource);
    request.set_target(v1::HOST);
    absl::StatusOr<v1::Job> job = client_->Submit(request);
    EXPECT_TRUE(job.ok()) << job.status();
    if (!job.ok()) return {};
    absl::StatusOr<v1::Job> done = client_->WatchJob(job->name(), 0, [&](const v1::JobEvent& event) {
      builds_ += event.has_build();
      timings_ += event.has_timing();
    });
    EXPECT_TRUE(done.ok()) << done.status();
    if (!done.ok()) return {};
    EXPECT_EQ(done->state(), v1::SUCCEEDED) << done->ShortDebugString();
    return done->result();
  }
  v1::RoutineTables Benchmark(bool again = false) {
    v1::SubmitRequest request;
    request.mutable_benchmark()->set_again(again);
    const v1::JobResult result = Run(request);
    EXPECT_FALSE(result.has_search());
    EXPECT_EQ(result.candidates_size(), 0);
    EXPECT_TRUE(result.has_routines());
    key_ = {.device_class = result.device().name(), .toolkit = result.device().toolkit_version()};
    return result.routines();
  }

  static std::string SourceHash(const std::string& routine) {
    const ElementaryFunction* function =
        (*Catalog::BuiltIn())->FindByRoutine(routine.substr(0, routine.find('<')));
    return function == nullptr ? "" : function->source_hash;
  }

  RoutineTablesKey key_;
  int builds_ = 0, timings_ = 0;
};

TEST_F(RoutineBenchmarkTest, TablesAreMeasuredOnceAndRefusedWhenNotTrue) {
  // On a busy machine no time may be steady, and nothing is kept.
  v1::RoutineTables first = Benchmark();
  for (int again = 0; again < 4 && first.tables().empty(); ++again) first = Benchmark();
  ASSERT_FALSE(first.tables().empty()) << first.ShortDebugString();
  EXPECT_EQ(first.known(), 0);
  EXPECT_GT(first.measured(), 0);
  EXPECT_EQ(first.measured(), first.tables_size());
  EXPECT_GT(builds_, 0);
  EXPECT_GT(timings_, 0);
  std::set<std::string> routines;
  for (const v1::RoutineTable& table : first.tables()) {
    routines.insert(table.routine());
    for (const v1::RoutineTable::Point& point : table.points()) {
      EXPECT_GT(point.seconds(), 0) << table.routine();
      EXPECT_LT(point.seconds(), 1) << table.routine();
    }
  }
  // A load from memory is never lost in the noise; it may be left out where other work disturbs it, which is
  // said.
  if (first.notes().empty()) {
    EXPECT_TRUE(routines.count("load f32[1] registers")) << first.ShortDebugString();
  }

  builds_ = timings_ = 0;
  const v1::RoutineTables second = Benchmark();
  EXPECT_EQ(second.known(), std::count_if(routines.begin(), routines.end(), [&](const auto& routine) {
              return NeedsNoMeasuring(routine, routines);
            }));
  EXPECT_LE(second.known() + second.measured(), first.measured() + second.measured());
  const bool all = std::all_of(routines.begin(), routines.end(), [&](const auto& routine) {
    return absl::StartsWith(routine, "store ") || NeedsNoMeasuring(routine, routines);
  });
  if (first.notes().empty() && all) {
    EXPECT_EQ(second.measured(), 0);
    EXPECT_EQ(timings_, 0);
  }

  // One table is no message any more; and one is of another device, as copied from there.
  const v1::RoutineTable table = first.tables(0);
  client_.reset();
  {
    auto store = OpenSqliteStore(folder_ + "/fusion.db");
    ASSERT_TRUE(store.ok()) << store.status();
    // Where one of a load and a store was lost in the noise, both are measured again.
    std::set<std::string> stored = routines;
    for (const v1::RoutineTable& again : second.tables()) stored.insert(again.routine());
    ASSERT_EQ((*store)->RoutineTables(key_)->size(), stored.size());
    ASSERT_TRUE((*store)
                    ->PutRoutineTable(key_,
                                      {table.routine(), SourceHash(table.routine()), "\xff\xff no table"},
                                      Timestamp())
                    .ok());
    v1::RoutineTable foreign = table;
    foreign.set_device_class("another device");
    foreign.set_routine("zzz");
    ASSERT_TRUE((*store)->PutRoutineTable(key_, {"zzz", "", foreign.SerializeAsString()}, Timestamp()).ok());
  }
  Open();
  const v1::RoutineTables third = Benchmark();
  ASSERT_FALSE(third.notes().empty());
  EXPECT_THAT(third.notes(0), AllOf(HasSubstr("stored tables of routine times: 2 of "),
                                    HasSubstr(table.routine()), HasSubstr("library bench")));
  // It is measured again, or its note says that it could not be.
  std::set<std::string> again;
  for (const v1::RoutineTable& measured : third.tables()) again.insert(measured.routine());
  const bool is_mended = again.count(table.routine()) > 0;
  if (!is_mended) {
    EXPECT_THAT(third.notes(), Contains(AllOf(HasSubstr("could be measured"), HasSubstr(table.routine()))));
  }

  // Predictions do without what is refused and say so.
  v1::ExplainRequest explain;
  explain.mutable_source()->set_fuse(kSource);
  explain.set_target(v1::HOST);
  absl::StatusOr<v1::ExplainResponse> explained = client_->Explain(explain);
  ASSERT_TRUE(explained.ok()) << explained.status();
  EXPECT_THAT(
      explained->search().notes(),
      Contains(HasSubstr(absl::StrCat("stored tables of routine times: ", is_mended ? 1 : 2, " of "))));
  if (is_mended) {
    EXPECT_THAT(explained->search().notes(),
                Contains(HasSubstr("it says that it is of another routine, device")));
  }
}

// Tables made by hand, so that nothing depends on how noisy this machine is.
TEST_F(RoutineBenchmarkTest, PredictionsUseTables) {
  v1::SubmitRequest request;
  request.set_candidates(2);
  const v1::JobResult result = Run(request);  // the device is known from now on
  EXPECT_EQ(result.routines().measured(), 0);
  key_ = {.device_class = result.device().name(), .toolkit = result.device().toolkit_version()};
  v1::GraphSource source;
  source.set_fuse(kSource);
  const auto graph = ParseSource(source, *Catalog::BuiltIn());
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Value& value = (*graph)->values().front();
  client_.reset();
  {
    auto store = OpenSqliteStore(folder_ + "/fusion.db");
    ASSERT_TRUE(store.ok()) << store.status();
    // For every implementation and tile: what was learned from times of a busy machine may leave any of them.
    std::set<std::string> routines;
    for (const LoadPath path : {LoadPath::kDirect, LoadPath::kStaged}) {
      routines.insert({LoadRoutine(value, path), StoreRoutine(value, path)});
      for (const int choice : {0, 1})
        routines.insert(
            ComputeRoutine(**graph, (*graph)->nodes().front(), choice, path == LoadPath::kStaged));
    }
    for (const std::string& routine : routines) {
      v1::RoutineTable table;
      table.set_version(kRoutineTableVersion);
      table.set_device_class(key_.device_class);
      table.set_toolkit(key_.toolkit);
      table.set_routine(routine);
      for (int tile = 1; tile <= 4096; tile *= 2) {
        v1::RoutineTable::Point* point = table.add_points();
        point->set_threads(tile);
        point->set_elements(tile);
        point->set_resident_blocks(1);
        point->set_seconds(tile * 1e-11);  // faster than any, so that what was learned cannot rule it out
      }
      ASSERT_TRUE(
          (*store)
              ->PutRoutineTable(key_, {routine, SourceHash(routine), table.SerializeAsString()}, Timestamp())
              .ok());
    }
  }
  Open();
  // By then the worker has said what it has.
  request.set_request_id("again");
  Run(request);
  v1::ExplainRequest explain;
  *explain.mutable_source() = source;
  explain.set_target(v1::HOST);
  absl::StatusOr<v1::ExplainResponse> explained = client_->Explain(explain);
  ASSERT_TRUE(explained.ok()) << explained.status();
  EXPECT_THAT(explained->text(), HasSubstr("of measured routines"));
}

}  // namespace
}  // namespace fusion
