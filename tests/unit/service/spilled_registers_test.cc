// Candidates for whose values the compiler finds no registers: what its log says, and what a job does with
// them. The worker is played.
#include "server/service/spilled_registers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/model/architecture.h"
#include "server/service/optimize_pipeline.h"
#include "tests/example_source.h"
#include "tests/unit/dispatch/dispatch_fixture.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

std::string SpillLine(const std::string& kernel, int stored, int loaded) {
  return absl::StrCat("ptxas warning : Registers are spilled to local memory in function '", kernel, "', ",
                      stored, " bytes spill stores, ", loaded, " bytes spill loads\n");
}

TEST(SpilledRegisters, AreReadFromTheLogOfTheCompiler) {
  EXPECT_EQ(SpilledBytes(""), 0);
  EXPECT_EQ(SpilledBytes("ptxas warning : something else, 12 bytes\n"), 0);
  EXPECT_EQ(SpilledBytes(SpillLine("a", 44, 48)), 92);
  EXPECT_EQ(SpilledBytes("warning: built for sm_90\n" + SpillLine("a", 44, 48) + SpillLine("b", 0, 8)), 100);
  // A worker may say anything.
  EXPECT_EQ(SpilledBytes(", -5 bytes spill stores, x bytes spill loads, 99999999999999999999 bytes spill "
                         "stores\n bytes spill loads"),
            0);
}

class SpilledCandidatesTest : public DispatchTest {
 protected:
  // The answer to a job on a device whose worker's compiler spills in kernels whose source `spills` says
  // true of.
  v1::JobResult Run(const v1::GraphSource& source, std::function<bool(const std::string& source)> spills) {
    v1::DeviceDescription device = DescribedCudaDevice("sm_90");
    device.set_uuid("GPU-1");
    Call(Request("worker", {}, {device}));
    std::thread worker([&] {
      v1::SynchronizeRequest request = Request("worker", {}, {device});
      request.set_wait_seconds(0.02);
      while (!stop_) {
        const v1::SynchronizeResponse response = Call(request);
        request.clear_tasks();
        for (const v1::Assignment& assignment : response.assignments())
          *request.add_tasks() = assignment.has_build() ? BuildOf(assignment, spills) : TimesOf(assignment);
      }
    });
    v1::SubmitRequest request;
    *request.mutable_source() = source;
    request.set_target(v1::CUDA);
    request.set_candidates(12);
    const PipelineContext context{*store_,
                                  *dispatcher_,
                                  *Catalog::BuiltIn(),
                                  NewJob(),
                                  CancellationToken(),
                                  [&](const v1::JobEvent& event) {
                                    if (event.has_note()) notes_.push_back(event.note());
                                  },
                                  ""};
    auto result = OptimizePipeline(request, context);
    stop_ = true;
    worker.join();
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? *std::move(result) : v1::JobResult();
  }
  static v1::GraphSource JointPoses() { return testing::ExampleSource("joint_poses"); }

  std::set<std::string> timed_;  // names of programs
  std::vector<std::string> notes_;
  int unfused_timed_ = 0;
  int stored_ = 440, loaded_ = 480;  // bytes, by kernels that spill

 private:
  v1::TaskReport BuildOf(const v1::Assignment& assignment,
                         const std::function<bool(const std::string& source)>& spills) {
    v1::TaskReport report = Built(assignment, v1::OK, Upload("code of " + assignment.build().key()));
    report.mutable_build()->set_log(spills(assignment.build().source()) ? SpillLine("fused", stored_, loaded_)
                                                                        : "");
    return report;
  }
  v1::TaskReport TimesOf(const v1::Assignment& assignment) {
    v1::TaskReport report;
    report.set_task(assignment.task());
    report.set_fence(assignment.fence());
    v1::TimeResult* result = report.mutable_time();
    const auto time = [&](const std::string& name, double seconds, v1::ProgramMeasurement* measurement) {
      measurement->set_name(name);
      measurement->set_outcome(v1::OK);
      for (v1::Statistics* statistics : {measurement->mutable_cold(), measurement->mutable_warm()}) {
        statistics->set_median(seconds);
        statistics->set_low(0.99 * seconds);
        statistics->set_high(1.01 * seconds);
        statistics->set_samples(7);
      }
    };
    time("unfused", 4e-3, result->mutable_unfused());
    ++unfused_timed_;
    for (const v1::Program& program : assignment.time().programs()) {
      time(program.name(), 2e-3, result->add_programs());
      timed_.insert(program.name());
    }
    return report;
  }
  std::atomic<bool> stop_ = false;
};

TEST_F(SpilledCandidatesTest, AreNotTimedWhereOthersDoNotSpill) {
  std::set<std::string> spilling;
  const v1::JobResult result = Run(JointPoses(), [&](const std::string& source) {
    // Of the kernels that compute both, the first three.
    if (spilling.size() < 3 && absl::StrContains(source, "fused_G_y(")) spilling.insert(source);
    return spilling.contains(source);
  });
  ASSERT_FALSE(spilling.empty());
  int rejected = 0, ranked = 0;
  for (const v1::Candidate& candidate : result.candidates()) {
    if (candidate.outcome() == v1::OK) {
      ++ranked;
      continue;
    }
    ++rejected;
    EXPECT_EQ(candidate.outcome(), v1::EXCEEDS_DEVICE);
    EXPECT_THAT(candidate.message(), AllOf(HasSubstr("920 bytes"), HasSubstr("not timed")));
    EXPECT_THAT(timed_, Not(Contains(absl::StrCat("candidate ", candidate.predicted_rank()))));
    EXPECT_FALSE(candidate.has_measured());
  }
  EXPECT_GT(rejected, 0);
  EXPECT_GT(ranked, 0);
  EXPECT_EQ(result.search().timed(), ranked);
  EXPECT_EQ(result.candidates(0).outcome(), v1::OK);
  EXPECT_THAT(notes_, Not(Contains(HasSubstr("spill"))));
}

// Then they are what there is. The unfused cover is timed whatever it does.
TEST_F(SpilledCandidatesTest, AreRankedWhereAllSpillAndTheAnswerSaysSo) {
  const v1::JobResult result = Run(JointPoses(), [](const std::string&) { return true; });
  ASSERT_GT(result.candidates_size(), 0);
  for (const v1::Candidate& candidate : result.candidates()) {
    EXPECT_EQ(candidate.outcome(), v1::OK);
    EXPECT_THAT(candidate.message(), HasSubstr("920 bytes"));
  }
  EXPECT_EQ(result.search().timed(), result.candidates_size());
  EXPECT_THAT(result.search().notes(), Contains(HasSubstr("spill registers")));
  EXPECT_THAT(notes_, Contains(HasSubstr("spill registers")));
  EXPECT_GT(unfused_timed_, 0);
  EXPECT_GT(result.unfused().median(), 0);
}

// They cost less than another place for all the values.
TEST_F(SpilledCandidatesTest, OfAFewBytesAreRankedByTheirTimes) {
  stored_ = loaded_ = 64;
  const v1::JobResult result = Run(JointPoses(), [](const std::string&) { return true; });
  ASSERT_GT(result.candidates_size(), 0);
  for (const v1::Candidate& candidate : result.candidates()) EXPECT_EQ(candidate.outcome(), v1::OK);
  EXPECT_THAT(notes_, Not(Contains(HasSubstr("spill"))));
}

// Rows that are kept in registers gain more than a few spilled ones cost: time decides.
TEST_F(SpilledCandidatesTest, OfRowsAndVectorsAreRankedByTheirTimes) {
  bool first = true;
  const v1::JobResult result = Run(testing::ExampleSource("bicgk"), [&](const std::string& source) {
    return std::exchange(first, false) || absl::StrContains(source, "fused_q_s");
  });
  ASSERT_GT(result.candidates_size(), 0);
  for (const v1::Candidate& candidate : result.candidates()) EXPECT_EQ(candidate.outcome(), v1::OK);
  EXPECT_EQ(result.search().timed(), result.candidates_size());
}

}  // namespace
}  // namespace fusion
