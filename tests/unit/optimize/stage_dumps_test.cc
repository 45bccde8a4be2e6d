// Each stage dumps its whole value (--dump-dir): the next stage goes on from it.
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>

#include "base/temporary_directory.h"
#include "server/optimize/build_stage.h"
#include "server/optimize/code_stage.h"
#include "server/optimize/optimize_pipeline.h"
#include "server/optimize/search_messages.h"
#include "tests/example_source.h"
#include "tests/unit/dispatch/dispatch_fixture.h"

namespace fusion {
namespace {

using google::protobuf::util::MessageDifferencer;

class StageDumpsTest : public DispatchTest {
 protected:
  void SetUp() override {
    DispatchTest::SetUp();
    auto directory = TemporaryDirectory::Create();
    ASSERT_TRUE(directory.ok()) << directory.status();
    directory_ = *std::move(directory);
    v1::ExplainRequest request;
    *request.mutable_source() = testing::ExampleSource("gemver");
    request.set_target(v1::CUDA);
    request.set_arch("sm_90");
    request.set_candidates(kCandidates);
    request.set_sources(true);
    auto explained = ExplainPipeline(request, Context(directory_->path()));
    ASSERT_TRUE(explained.ok()) << explained.status();
    auto checked = CheckSource(request.source(), *Catalog::BuiltIn());
    ASSERT_TRUE(checked.ok()) << checked.status();
    submission_ = *std::move(checked);
  }
  PipelineContext Context(const std::string& dump_directory = "") {
    return {*store_,  *dispatcher_,        searches_, *Catalog::BuiltIn(),
            NewJob(), CancellationToken(), nullptr,   dump_directory};
  }
  template <typename Message>
  Message Read(const std::string& name) {
    std::ifstream file(std::filesystem::path(directory_->path()) / name);
    std::stringstream text;
    text << file.rdbuf();
    Message message;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text.str(), &message)) << name;
    return message;
  }
  CostModel Model() {
    auto model = FromMessage(Read<v1::PredictionModel>("model.textproto"), nullptr);
    EXPECT_TRUE(model.ok()) << model.status();
    return *std::move(model);
  }

  static constexpr int kCandidates = 6;
  std::unique_ptr<TemporaryDirectory> directory_;
  SearchPool searches_{SearchLimits()};
  Submission submission_;
};

TEST_F(StageDumpsTest, ASearchFromTheDumpedModelFindsTheDumpedPlans) {
  const auto plans = PlanCovers(submission_, Model(), kCandidates, false);
  ASSERT_TRUE(plans.ok()) << plans.status();
  const v1::FoundPlans dumped = Read<v1::FoundPlans>("plans.textproto");
  ASSERT_EQ(dumped.covers_size(), kCandidates);
  const v1::FoundPlans found = ToMessage(WithoutUnused(*plans));
  for (int i = 0; i < kCandidates; ++i)
    EXPECT_TRUE(MessageDifferencer::ApproximatelyEquals(found.covers(i), dumped.covers(i))) << i;
}

TEST_F(StageDumpsTest, TheDumpedPlansHaveTheDumpedCandidates) {
  const auto plans = FromMessage(Read<v1::FoundPlans>("plans.textproto"), *submission_.graph);
  ASSERT_TRUE(plans.ok()) << plans.status();
  const auto code = GenerateCode(submission_, Model(), *plans);
  ASSERT_TRUE(code.ok()) << code.status();
  const v1::CandidateSet dumped = Read<v1::CandidateSet>("candidates.textproto");
  EXPECT_EQ(dumped.candidates_size(), kCandidates);
  EXPECT_TRUE(MessageDifferencer::ApproximatelyEquals(code->set, dumped));
}

TEST_F(StageDumpsTest, TheDumpedCandidatesAreBuiltWithoutTheirGraph) {
  v1::CandidateSet set = Read<v1::CandidateSet>("candidates.textproto");
  std::atomic<bool> stop = false;
  std::thread worker([&] {
    Work(
        Request("w", {}, {CudaDevice("GPU-1")}),
        [&](const v1::Assignment& assignment) {
          return Built(assignment, v1::OK, Upload(assignment.build().key()));
        },
        stop);
  });
  v1::BuiltCode built;
  const absl::Status status = BuildCandidates({0, 1}, &set, Context(), &built);
  stop = true;
  worker.join();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_GT(built.builds(), 0);
  for (const v1::Program& program :
       {set.reference(), set.unfused(0), set.candidates(0).program(), set.candidates(1).program()}) {
    EXPECT_GT(program.launches_size(), 0);
    const v1::Program with_binaries = BuiltProgram(program, built);
    for (const v1::Launch& launch : with_binaries.launches())
      EXPECT_EQ(*store_->HasBlob(launch.binary()), true) << launch.kernel();
  }
}

}  // namespace
}  // namespace fusion
