// Why two values are, or are not, computed in one kernel.
#include "server/optimize/explain_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "server/target/target.h"
#include "tests/example_source.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;

class ExplainPairTest : public ::testing::Test {
 protected:
  void Plan(const std::string& text) {
    auto checked = CheckSource(testing::TextSource(text), *Catalog::BuiltIn());
    ASSERT_TRUE(checked.ok()) << checked.status();
    submission_.emplace(*std::move(checked));
    auto plans = PlanCovers(*submission_, model_, 4, false);
    ASSERT_TRUE(plans.ok()) << plans.status();
    plans_.emplace(*std::move(plans));
  }
  v1::PairExplanation Why(const std::string& a, const std::string& b) {
    auto answer = ExplainPair(*submission_, model_, *plans_, {}, a, b);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *answer : v1::PairExplanation();
  }

  const CostModel model_{DescribedDevice(v1::CUDA, "sm_90")};
  std::optional<Submission> submission_;
  std::optional<Plans> plans_;
};

TEST_F(ExplainPairTest, NamesTheKernelThatComputesBoth) {
  Plan("size n = 1000000; vector[n] a, b, c, d; input a, b; c = vadd(a, b); d = vmul(c, a); return d;");
  const v1::PairExplanation answer = Why("d", "c");
  EXPECT_TRUE(answer.together());
  EXPECT_EQ(answer.values(0), "d");
  EXPECT_EQ(answer.values(1), "c");
  EXPECT_THAT(answer.fusion(), HasSubstr("{c d} vector"));
  EXPECT_THAT(answer.text(), HasSubstr(answer.fusion()));
  EXPECT_EQ(answer.together_seconds(), answer.best_seconds());
  EXPECT_EQ(answer.best_seconds(), plans_->covers.covers.front().seconds);
}

TEST_F(ExplainPairTest, SaysThatNothingJoinsThem) {
  Plan("size n = 1000; vector[n] a, b, c, d; input a, b; c = exp(a); d = exp(b); return c, d;");
  const v1::PairExplanation answer = Why("c", "d");
  EXPECT_FALSE(answer.together());
  EXPECT_EQ(answer.together_seconds(), 0);
  EXPECT_EQ(answer.fusion(), "");
  EXPECT_THAT(answer.text(), HasSubstr("nothing joins them"));
}

TEST_F(ExplainPairTest, GivesTheReasonOfTheRulesForAllThatLiesBetween) {
  // Five products, each of which needs all of the one before: more sweeps than a kernel makes.
  Plan(
      "size n = 1000; matrix[n,n] B; vector[n] p, q, r, s, t, u; input B, p; q = gemtv(1.0, B, p); r = "
      "gemtv(1.0, B, q);"
      "s = gemtv(1.0, B, r); t = gemtv(1.0, B, s); u = gemtv(1.0, B, t); return u;");
  const v1::PairExplanation answer = Why("q", "u");
  EXPECT_FALSE(answer.together());
  EXPECT_EQ(answer.together_seconds(), 0);
  EXPECT_THAT(answer.text(), HasSubstr("{q r s t u}"));
  EXPECT_GT(answer.text().size(),
            std::string("a kernel for both computes what lies between too, {q r s t u}; ").size());
}

TEST_F(ExplainPairTest, ComparesTimesWhereAKernelExists) {
  // Two products that share only a short vector: one kernel for both reads no less, and holds up both.
  Plan(
      "size m = 5000, n = 4000; matrix[m,n] A, B; vector[n] x; vector[m] y, z; input A, B, x; y = gemv(1.0, "
      "A, x);"
      "z = gemv(1.0, B, x); return y, z;");
  const v1::PairExplanation answer = Why("y", "z");
  EXPECT_GT(answer.best_seconds(), 0);
  EXPECT_GE(answer.together_seconds(), answer.best_seconds());
  EXPECT_NE(answer.fusion(), "");
  EXPECT_EQ(answer.together(), answer.together_seconds() == answer.best_seconds());
  EXPECT_THAT(answer.text(), HasSubstr(answer.fusion()));
}

TEST_F(ExplainPairTest, SaysThatHintsKeepThemApart) {
  Plan("size n = 1000000; vector[n] a, b, c, d; input a, b; c = vadd(a, b); d = vmul(c, a); return d;");
  v1::FusionHints asked;
  for (const char* value : {"c", "d"})
    (asked.apart().empty() ? asked.add_apart() : asked.mutable_apart(0))->add_values(value);
  auto hints = ResolveHints(*submission_->graph, asked);
  ASSERT_TRUE(hints.ok()) << hints.status();
  auto plans = PlanCovers(*submission_, model_, 4, false, *hints);
  ASSERT_TRUE(plans.ok()) << plans.status();
  auto answer = ExplainPair(*submission_, model_, *plans, *hints, "c", "d");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_FALSE(answer->together());
  EXPECT_EQ(answer->together_seconds(), 0);
  EXPECT_THAT(answer->text(), HasSubstr("the hints permit none"));
}

TEST_F(ExplainPairTest, NamesWhatCannotBeAsked) {
  Plan("size n = 1000; vector[n] a, b, c; input a, b; c = vadd(a, b); return c;");
  for (const auto& [first, second, message] :
       {std::tuple{"c", "q", "no value q"}, {"a", "c", "a is an input"}, {"c", "c", "the same value"}}) {
    const auto answer = ExplainPair(*submission_, model_, *plans_, {}, first, second);
    EXPECT_TRUE(absl::IsInvalidArgument(answer.status())) << answer.status();
    EXPECT_THAT(std::string(answer.status().message()), HasSubstr(message));
  }
}

}  // namespace
}  // namespace fusion
