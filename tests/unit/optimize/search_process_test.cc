// Searches in processes of their own: what they find is what is found in this one, and they end alone.
#include "server/optimize/search_process.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/rpc/status_details.h"
#include "server/optimize/search_messages.h"
#include "server/search/kernel_identity.h"
#include "server/skeletons/skeletons.h"
#include "server/target/target.h"
#include "tests/example_source.h"
#include "tests/large_source.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

// Times of kernels that an earlier search predicted, each as if it had been measured to be slower.
class SlowKernels final : public KernelMemory {
 public:
  SlowKernels(const Submission& submission, const Plans& plans) {
    const KernelNames names(*submission.graph, submission.sizes);
    for (const FusionImplementation& kernel : plans.space.implementations) {
      const KernelIdentity identity = names.Of(kernel);
      kernels_[identity.family].push_back({.sizes = identity.sizes,
                                           .variant = identity.variant,
                                           .seconds = 1.5 * kernel.estimate.total_seconds,
                                           .deviation = 0.01,
                                           .predicted_seconds = kernel.estimate.total_seconds,
                                           .features = FeaturesOf(kernel),
                                           .jobs = 3,
                                           .learned_micros = 5});
    }
  }
  std::vector<RememberedKernel> Find(const std::string& family) const override {
    ++asked;
    const auto found = kernels_.find(family);
    return found == kernels_.end() ? std::vector<RememberedKernel>() : found->second;
  }
  std::vector<std::string> Families() const override {
    std::vector<std::string> families;
    for (const auto& [family, kernels] : kernels_) families.push_back(family);
    return families;
  }
  mutable std::atomic<int> asked = 0;

 private:
  std::map<std::string, std::vector<RememberedKernel>> kernels_;
};

class SearchProcessTest : public ::testing::Test {
 protected:
  void Read(const v1::GraphSource& source) {
    request_ = {};
    *request_.mutable_source() = source;
    request_.set_candidates(30);
    auto checked = CheckSource(source, library_);
    ASSERT_TRUE(checked.ok()) << checked.status();
    submission_ = *std::move(checked);
  }
  absl::StatusOr<FoundPlans> Search(SearchPool& pool, const CostModel& model,
                                    const std::function<bool()>& cancelled = nullptr) {
    return pool.Search(request_, *submission_.graph, model, *library_, cancelled);
  }
  // What it says, but for how long it took.
  static std::string Text(const Plans& plans) {
    v1::FoundPlans message = ToMessage(plans);
    message.mutable_summary()->clear_seconds();
    return message.DebugString();
  }
  void ExpectSamePlans(SearchPool& pool, const CostModel& model) {
    auto here = PlanCovers(submission_, model, request_.candidates(), request_.deterministic());
    ASSERT_TRUE(here.ok()) << here.status();
    auto there = Search(pool, model);
    ASSERT_TRUE(there.ok()) << there.status();
    const Plans used = WithoutUnused(*here);
    EXPECT_EQ(Text(used), Text(there->plans));
    EXPECT_LE(used.space.implementations.size(), here->space.implementations.size());
    // Which are used says nothing of how they are described.
    const auto described = [&](const Plans& plans, const std::vector<CoverSolution>& covers) {
      std::vector<std::string> texts;
      for (const CoverSolution& cover : covers)
        texts.push_back(DescribeCover(*submission_.graph, plans.space, cover, 1).description());
      return texts;
    };
    EXPECT_EQ(described(*here, here->covers.covers), described(there->plans, there->plans.covers.covers));
    EXPECT_EQ(described(*here, UnfusedCovers(here->space)),
              described(there->plans, UnfusedCovers(there->plans.space)));
    EXPECT_EQ(IsSmall(*here), IsSmall(there->plans));
  }
  const std::shared_ptr<const Catalog> library_ = *Catalog::BuiltIn();
  v1::SearchRequest request_;
  Submission submission_;
};

TEST_F(SearchProcessTest, FindsWhatASearchInThisProcessFinds) {
  SearchPool pool{SearchLimits()};
  for (const char* example :
       {"bicgk", "atax", "gemver", "layer_norm", "softmax", "function1", "cg_step", "adam_step"})
    for (const v1::Target target : {v1::CUDA, v1::HOST}) {
      SCOPED_TRACE(absl::StrCat(example, " ", v1::Target_Name(target)));
      ASSERT_NO_FATAL_FAILURE(Read(testing::ExampleSource(example)));
      ExpectSamePlans(pool, CostModel(DescribedDevice(target)));
    }
}

TEST_F(SearchProcessTest, AsksForRememberedKernelsAndUsesCorrectionsAndTables) {
  SearchPool pool{SearchLimits()};
  ASSERT_NO_FATAL_FAILURE(Read(testing::ExampleSource("bicgk")));
  const CostModel ignorant(DescribedDevice(v1::CUDA));
  auto plans = PlanCovers(submission_, ignorant, 30, false);
  ASSERT_TRUE(plans.ok()) << plans.status();
  v1::ResidualStatistics statistics;
  ResidualObservation observation{.measured_seconds = 1};
  for (const FusionImplementation& kernel : plans->space.implementations) {
    observation.kernels = {FeaturesOf(kernel)};
    observation.predicted_seconds = {0.8};
    AddJob({observation}, &statistics);
  }
  RoutineTables tables;
  v1::RoutineTable table;
  table.set_version(kRoutineTableVersion);
  table.set_routine("a routine");
  for (const auto& [resident, seconds] : {std::pair{1, 1e-6}, {2, 1.5e-6}}) {
    v1::RoutineTable::Point* point = table.add_points();
    point->set_threads(64);
    point->set_elements(32);
    point->set_resident_blocks(resident);
    point->set_seconds(seconds);
  }
  ASSERT_TRUE(tables.Add(table).ok());
  const auto memory = std::make_shared<SlowKernels>(submission_, *plans);
  const CostModel taught(DescribedDevice(v1::CUDA), 1e6, Residual(statistics, v1::CUDA), tables, memory);
  ASSERT_GT(taught.residual().jobs(), 0);
  auto back = FromMessage(ToMessage(taught), memory);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->routines().Time("a routine", 64, 32, 1.5)->seconds,
            taught.routines().Time("a routine", 64, 32, 1.5)->seconds);
  ExpectSamePlans(pool, taught);
  EXPECT_GT(memory->asked, 0);
}

TEST_F(SearchProcessTest, ErrorsSayWhatTheySayHere) {
  SearchPool pool{SearchLimits()};
  ASSERT_NO_FATAL_FAILURE(Read(testing::ExampleSource("bicgk")));
  v1::FusionHints::Group* group = request_.mutable_hints()->add_together();
  group->add_values("q");
  group->add_values("nothing");
  const absl::Status status = Search(pool, CostModel(DescribedDevice(v1::CUDA))).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("nothing"));
  EXPECT_FALSE(FieldViolations(status).empty());
  request_.clear_hints();
  EXPECT_TRUE(Search(pool, CostModel(DescribedDevice(v1::CUDA))).ok()) << "the process goes on";
}

TEST_F(SearchProcessTest, ASearchThatNeedsTooMuchMemoryEndsAlone) {
  SearchPool pool({.memory_bytes = uint64_t{80} << 20});
  ASSERT_NO_FATAL_FAILURE(Read(testing::LargeSource()));
  request_.set_fusions(kMostFusions);
  const CostModel model(DescribedDevice(v1::CUDA));
  const absl::Status large = Search(pool, model).status();
  EXPECT_TRUE(absl::IsResourceExhausted(large)) << large;
  EXPECT_THAT(std::string(large.message()), HasSubstr("more memory than it may have, 80 MiB"));
  ASSERT_NO_FATAL_FAILURE(Read(testing::ExampleSource("bicgk")));
  ExpectSamePlans(pool, model);
}

TEST_F(SearchProcessTest, ASearchEndsAtItsDeadlineAndWhenNobodyWantsIt) {
  ASSERT_NO_FATAL_FAILURE(Read(testing::LargeSource()));
  request_.set_fusions(kMostFusions);
  const CostModel model(DescribedDevice(v1::CUDA));
  SearchPool hasty({.time = std::chrono::milliseconds(100)});
  const absl::Status late = Search(hasty, model).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_THAT(std::string(late.message()), HasSubstr("longer than 0.1 s"));
  SearchPool pool{SearchLimits()};
  const absl::Status cancelled = Search(pool, model, [] { return true; }).status();
  EXPECT_TRUE(absl::IsCancelled(cancelled)) << cancelled;
}

TEST_F(SearchProcessTest, AProcessThatDiesIsToldAndOneThatIsNotThereToo) {
  ASSERT_NO_FATAL_FAILURE(Read(testing::ExampleSource("vadd")));
  const CostModel model(DescribedDevice(v1::CUDA));
  SearchPool dying({.program = "/bin/false"});
  const absl::Status died = Search(dying, model).status();
  EXPECT_TRUE(absl::IsInternal(died)) << died;
  EXPECT_THAT(std::string(died.message()), HasSubstr("the process that searched exited with code 1"));
  SearchPool absent({.program = "/no/such/program"});
  EXPECT_TRUE(absl::IsNotFound(Search(absent, model).status()));
}

}  // namespace
}  // namespace fusion
