#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/render.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

v1::Job Benchmark() {
  v1::Job job;
  job.set_name("jobs/1");
  job.set_state(v1::SUCCEEDED);
  v1::JobResult* result = job.mutable_result();
  result->mutable_device()->set_name("NVIDIA H200");
  result->mutable_device()->set_target(v1::CUDA);
  v1::RoutineTables* routines = result->mutable_routines();
  routines->set_known(2);
  routines->set_measured(1);
  routines->set_seconds(38.5);
  routines->add_notes("no times of x could be measured");
  v1::RoutineTable* table = routines->add_tables();
  table->set_routine("mmul_row<f32,3,3,3> shared");
  for (int elements : {16, 128})
    for (int resident : {1, 4}) {
      v1::RoutineTable::Point* point = table->add_points();
      point->set_threads(128);
      point->set_elements(elements);
      point->set_resident_blocks(resident);
      point->set_extra_shared_bytes(1024 / resident);
      point->set_seconds(elements * 1e-8 * (resident + 1));
    }
  return job;
}

TEST(RenderRoutines, TextHasTheLargestTileAloneAndWithOthers) {
  const std::string text = BenchmarkText(Benchmark().result(), {});
  EXPECT_THAT(text, HasSubstr("NVIDIA H200"));
  EXPECT_THAT(text, HasSubstr("1 routine measured in 38.5"));
  EXPECT_THAT(text, HasSubstr("2 known before"));
  EXPECT_THAT(text, HasSubstr("2.560 us (1)"));
  EXPECT_THAT(text, HasSubstr("6.400 us (4)"));
  EXPECT_THAT(text, Not(HasSubstr("320")));  // of the smaller tile
  EXPECT_THAT(text, HasSubstr("note: no times of x could be measured"));
  EXPECT_EQ(ResultText(Benchmark().result(), {}), text);
}

TEST(RenderRoutines, JsonHasEveryPoint) {
  const Json json = BenchmarkJson(Benchmark());
  EXPECT_EQ(json["schema"], "fusion.library_bench/1");
  EXPECT_EQ(json["measured"], 1);
  EXPECT_EQ(json["tables"][0]["points"].size(), 4u);
  EXPECT_EQ(json["tables"][0]["points"][3]["extra_shared_bytes"], 256);
  EXPECT_EQ(JobJson(Benchmark())["benchmark"], json);
}

TEST(RenderRoutines, SubmissionsSayWhatWasMeasuredFirst) {
  v1::Job job = Benchmark();
  job.mutable_result()->mutable_search()->set_covers(1);
  EXPECT_FALSE(IsBenchmark(job.result()));
  EXPECT_THAT(ResultText(job.result(), {}), HasSubstr("first measured 1 routine of its functions"));
  EXPECT_EQ(SubmitJson(job, "")["routines"]["measured"], 1);
}

}  // namespace
}  // namespace fusion
