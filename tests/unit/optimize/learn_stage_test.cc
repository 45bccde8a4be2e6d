// What jobs teach, and that what one of them got wrong does not last.
#include "server/optimize/learn_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "server/optimize/plan_text.h"
#include "tests/example_source.h"
#include "tests/unit/dispatch/dispatch_fixture.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LearnTest : public DispatchTest {
 protected:
  void SetUp() override {
    DispatchTest::SetUp();
    auto checked = CheckSource(testing::ExampleSource("bicgk"), *Catalog::BuiltIn());
    ASSERT_TRUE(checked.ok()) << checked.status();
    for (auto& [symbol, value] : checked->sizes) value = 4096;
    submission_ = *std::move(checked);
  }
  PipelineContext Context() {
    return {*store_,  *dispatcher_,        searches_, *Catalog::BuiltIn(),
            NewJob(), CancellationToken(), nullptr,   ""};
  }
  CostModel Model() {
    const PipelineContext context = Context();
    std::string note;
    auto residual = LearnedResidual(device_, v1::COLD, context, {}, &note);
    auto memory = RememberedKernels(device_, v1::COLD, context);
    EXPECT_TRUE(residual.ok() && memory.ok());
    EXPECT_EQ(note, "");
    return CostModel(device_, 0, *residual, {}, *memory);
  }
  Plans Plan(const CostModel& model) {
    auto plans = PlanCovers(submission_, model, 30, false);
    EXPECT_TRUE(plans.ok()) << plans.status();
    return *std::move(plans);
  }
  // A job that times what it predicts best: `factor` gives times over those that the model knew nothing of,
  // for each kernel that is, or is not, the fusion of all.
  void Job(bool steady, double factor_of_fused, double factor_of_others = 1) {
    const CostModel model = Model();
    const Plans plans = Plan(model);
    auto code = GenerateCode(submission_, model, plans);
    ASSERT_TRUE(code.ok()) << code.status();
    for (size_t i = 0; i < code->units.size(); ++i) {
      double seconds = model.StartSeconds();
      for (int column : plans.covers.covers[i].columns) {
        const RunTimeEstimate& estimate = plans.space.implementations[column].estimate;
        seconds += estimate.total_seconds / estimate.correction *
                   (plans.covers.covers[i].columns.size() == 1 ? factor_of_fused : factor_of_others);
      }
      v1::Candidate& candidate = *code->set.mutable_candidates(i)->mutable_description();
      candidate.set_outcome(v1::OK);
      candidate.set_steady(steady);
      v1::Statistics* measured = candidate.mutable_measured();
      measured->set_median(seconds);
      measured->set_low(0.99 * seconds);
      measured->set_high(1.01 * seconds);
    }
    const PipelineContext context = Context();
    const absl::Status learned = LearnFromCandidates(submission_, model, v1::COLD, plans, *code, context);
    ASSERT_TRUE(learned.ok()) << learned;
  }
  // Whether the fusion of all is predicted to be the fastest.
  bool PredictsFused() { return Plan(Model()).covers.covers[0].columns.size() == 1; }
  bool TimesFused() {
    const Plans plans = Plan(Model());
    return std::any_of(plans.covers.covers.begin(), plans.covers.covers.end(),
                       [](const CoverSolution& cover) { return cover.columns.size() == 1; });
  }
  std::string Explain() {
    const CostModel model = Model();
    return PrintPlans(*submission_.graph, Plan(model), model.StartSeconds());
  }

  const DeviceDescription device_ = DescribedDevice(v1::CUDA);
  SearchPool searches_{SearchLimits()};
  Submission submission_;
};

TEST_F(LearnTest, TimesThatAreNotSteadyTeachNothing) {
  ASSERT_TRUE(PredictsFused());
  const double before = Plan(Model()).covers.covers[0].seconds;
  for (int job = 0; job < 20; ++job) Job(/*steady=*/false, 30, 2);
  EXPECT_EQ(Model().residual().jobs(), 0);
  EXPECT_EQ(Model().memory(), nullptr);
  EXPECT_EQ(Plan(Model()).covers.covers[0].seconds, before);
}

TEST_F(LearnTest, AFusedKernelThatOneBadJobBuriedComesBackByItself) {
  for (double factor : {1.5, 3.0, 30.0}) {
    Job(/*steady=*/true, factor);
    EXPECT_TRUE(TimesFused()) << "the next job tries it again " << factor;
    Job(/*steady=*/true, 1);
    EXPECT_TRUE(PredictsFused()) << factor;
  }
}

TEST_F(LearnTest, ExplainSaysFromHowManyJobsAndWhen) {
  EXPECT_THAT(Explain(), Not(HasSubstr("learned from")));
  Job(/*steady=*/true, 1);
  Job(/*steady=*/true, 1);
  const std::string text = Explain();
  EXPECT_THAT(text, HasSubstr("candidates of 2 jobs, the last on 20"));
  EXPECT_THAT(text, HasSubstr("its time was measured by 2 jobs, the last on 20"));
}

}  // namespace
}  // namespace fusion
