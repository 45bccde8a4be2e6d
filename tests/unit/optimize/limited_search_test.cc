// Graphs whose fusible sets are too many to look at: limits are named, covers valid, and nothing is said to
// be proved that is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/optimize/plan_text.h"
#include "server/optimize/plans.h"
#include "server/target/target.h"
#include "tests/example_source.h"

namespace fusion {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// The worst case of Fousek 2010, figure 4.3: `count` independent nodes, and what adds them up. `in_turn`:
// each sum right after its operands; else all independent nodes come first.
Submission SumOfMany(int count, bool in_turn) {
  std::string text = "size n = 1000003;\nvector[n] x";
  for (int k = 0; k < count; ++k) absl::StrAppend(&text, ", p", k, k > 0 ? absl::StrCat(", s", k) : "");
  text += ";\ninput x;\n";
  std::vector<std::string> products, sums(1);
  for (int k = 0; k < count; ++k) {
    products.push_back(absl::StrCat("p", k, " = scal(", k + 1, ", x);\n"));
    if (k > 0)
      sums.push_back(
          absl::StrCat("s", k, " = vadd(", k == 1 ? "p0" : absl::StrCat("s", k - 1), ", p", k, ");\n"));
  }
  for (int k = 0; k < count; ++k) absl::StrAppend(&text, products[k], in_turn ? sums[k] : "");
  if (!in_turn)
    for (const std::string& sum : sums) text += sum;
  auto checked =
      CheckSource(testing::TextSource(absl::StrCat(text, "return s", count - 1, ";\n")), *Catalog::BuiltIn());
  EXPECT_TRUE(checked.ok()) << checked.status();
  return *std::move(checked);
}

const CostModel& H100() {
  static const CostModel model(DescribedDevice(v1::CUDA, "sm_90"));
  return model;
}

TEST(LimitedSearch, TheWorstCaseHasAValidCoverAndNamesItsLimit) {
  const Submission submission = SumOfMany(500, false);
  auto plans = PlanCovers(submission, H100(), 30, false);
  ASSERT_TRUE(plans.ok()) << plans.status();
  EXPECT_FALSE(plans->space.complete);
  EXPECT_THAT(plans->space.notes,
              Contains(HasSubstr("not every fusible set was looked at (max_sets): all of ")));
  for (const CoverSolution& cover : plans->covers.covers) {
    std::set<int> nodes;
    for (int column : cover.columns)
      for (int node : plans->space.implementations[column].fusion.nodes.Members())
        EXPECT_TRUE(nodes.insert(node).second) << "twice: " << node;
    EXPECT_EQ(static_cast<int>(nodes.size()), submission.graph->node_count());
  }
  const v1::SearchSummary& summary = plans->summary;
  EXPECT_FALSE(summary.complete());
  EXPECT_FALSE(summary.proved_optimal());
  EXPECT_GT(summary.gap(), 0);
  EXPECT_LT(summary.gap(), 1);
  EXPECT_LE(plans->unseen_seconds, plans->covers.bound_seconds + H100().StartSeconds());
  EXPECT_THAT(PrintPlans(*submission.graph, *plans, H100().StartSeconds()),
              HasSubstr("among the sets that were looked at"));
}

TEST(LimitedSearch, AsManySetsAreLookedAtAsAreAskedFor) {
  const Submission submission = SumOfMany(100, false);
  auto few = PlanCovers(submission, H100(), 4, false, {}, 500),
       more = PlanCovers(submission, H100(), 4, false, {}, 6000);
  ASSERT_TRUE(few.ok() && more.ok()) << few.status() << more.status();
  EXPECT_LT(few->space.fusible_sets, 2 * 500);
  EXPECT_GT(more->space.fusible_sets, 6000 - 1);
  EXPECT_THAT(more->space.notes, Contains(HasSubstr("--max-fusions N looks at more")));
  EXPECT_LE(more->summary.gap(), few->summary.gap());
}

TEST(LimitedSearch, TheOrderOfStatementsMattersLittleAndContradictsNoBound) {
  auto first = PlanCovers(SumOfMany(100, false), H100(), 8, false),
       in_turn = PlanCovers(SumOfMany(100, true), H100(), 8, false);
  ASSERT_TRUE(first.ok() && in_turn.ok()) << first.status() << in_turn.status();
  const double one = first->summary.best_predicted_seconds(),
               other = in_turn->summary.best_predicted_seconds();
  EXPECT_LE(std::max(one, other), 1.25 * std::min(one, other));
  EXPECT_LE(std::max(first->summary.bound_seconds(), in_turn->summary.bound_seconds()), std::min(one, other));
}

TEST(LimitedSearch, AFusionThatIsAskedForIsLookedAtWhateverTheLimit) {
  const Submission submission = SumOfMany(500, false);
  v1::FusionHints asked;
  asked.add_together()->add_values("p400");
  asked.mutable_together(0)->add_values("p450");
  auto hints = ResolveHints(*submission.graph, asked);
  ASSERT_TRUE(hints.ok()) << hints.status();
  auto plans = PlanCovers(submission, H100(), 4, false, *hints);
  ASSERT_TRUE(plans.ok()) << plans.status();
  for (const CoverSolution& cover : plans->covers.covers)
    EXPECT_TRUE(std::any_of(cover.columns.begin(), cover.columns.end(), [&](int column) {
      const NodeSet& nodes = plans->space.implementations[column].fusion.nodes;
      return nodes.Contains(hints->together[0].Members()[0]) &&
             nodes.Contains(hints->together[0].Members()[1]);
    }));
}

// Each of 1,100 products is added to the sum before: layers of products alone would write each and read it
// again, whatever comes first in the source.
TEST(LimitedSearch, ChainsOfVeryLargeGraphsGrow) {
  for (bool in_turn : {false, true}) {
    const Submission submission = SumOfMany(1100, in_turn);
    const Graph& graph = *submission.graph;
    auto space = SearchFusions(graph, submission.sizes, H100(), {.implementation = {.keep = 1}});
    ASSERT_TRUE(space.ok()) << space.status();
    size_t large = 0;
    for (const FusionImplementation& kernel : space->implementations) {
      if (kernel.fusion.nodes.Size() < 48) continue;
      ++large;
      EXPECT_LE(kernel.loads.size() + kernel.stores.size(), 3u) << "x, the sum before and that behind";
    }
    EXPECT_GE(large, 2199u / 64);
    EXPECT_THAT(space->notes, Contains(HasSubstr("as chains alone since the graph is so large")));
  }
}

class CompleteSearch : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Examples, CompleteSearch, ::testing::Values("gemver", "black_scholes"));

TEST_P(CompleteSearch, IsProved) {
  auto checked = CheckSource(testing::ExampleSource(GetParam()), *Catalog::BuiltIn());
  ASSERT_TRUE(checked.ok()) << checked.status();
  for (auto& [symbol, value] : checked->sizes) value = 2048;
  auto plans = PlanCovers(*checked, H100(), 30, false);
  ASSERT_TRUE(plans.ok()) << plans.status();
  const v1::SearchSummary& summary = plans->summary;
  EXPECT_TRUE(summary.complete());
  EXPECT_TRUE(summary.proved_optimal());
  EXPECT_EQ(summary.gap(), 0);
  EXPECT_EQ(summary.listed_gap(), 0);
  ASSERT_FALSE(summary.fusions_by_size().empty());
  EXPECT_EQ(summary.fusions_by_size(0), checked->graph->node_count());
  EXPECT_THAT(PrintPlans(*checked->graph, *plans, H100().StartSeconds()), Not(HasSubstr("among the sets")));
  // What no kernel can be predicted to be faster than is less than what any is.
  EXPECT_LE(H100().LeastSeconds(static_cast<double>(checked->graph->FloorBytes(checked->sizes))),
            summary.best_predicted_seconds());
}

TEST(ExplainCover, TermsAddUpToThePrediction) {
  auto checked = CheckSource(testing::ExampleSource("cg_step"), *Catalog::BuiltIn());
  ASSERT_TRUE(checked.ok()) << checked.status();
  for (auto& [symbol, value] : checked->sizes) value = 2048;
  auto plans = PlanCovers(*checked, H100(), 8, false);
  ASSERT_TRUE(plans.ok()) << plans.status();
  for (const CoverSolution& cover : plans->covers.covers) {
    const v1::Candidate candidate = ExplainCover(*checked->graph, H100(), plans->space, cover, 1);
    ASSERT_EQ(candidate.estimates_size(), static_cast<int>(cover.columns.size()));
    double seconds = candidate.start_seconds();
    for (const v1::KernelEstimate& kernel : candidate.estimates()) {
      seconds += kernel.seconds();
      const double longest =
          std::max({kernel.memory_seconds(), kernel.compute_seconds(), kernel.alone_seconds()});
      EXPECT_THAT(candidate.description(), HasSubstr(kernel.description()));
      // Those of cooperative kernels are sums over their sweeps, whose longest terms differ.
      if (kernel.description().find("cooperative") != std::string::npos) continue;
      EXPECT_NEAR(kernel.seconds(),
                  (longest + kernel.waiting_seconds() + kernel.barrier_seconds() + kernel.launch_seconds()) *
                      kernel.correction(),
                  1e-9 * kernel.seconds())
          << kernel.description();
    }
    EXPECT_NEAR(seconds, candidate.predicted_seconds(), 1e-9 * seconds);
  }
}

}  // namespace
}  // namespace fusion
