#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/parse/parse.h"
#include "server/skeletons/skeletons.h"
#include "tests/any_parameters.h"
#include "tests/unit/search/parsed_text.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using testing::ParsedText;

// The fusion of the nodes that compute these variables.
SkeletonAnswer Ask(const Graph& graph, const std::vector<std::string>& results) {
  NodeSet nodes;
  for (const std::string& result : results)
    for (const Node& node : graph.nodes())
      if (graph.value(node.result).name == result) nodes.Add(node.id.value);
  EXPECT_EQ(nodes.Size(), static_cast<int>(results.size()));
  return ChooseSkeleton(graph, nodes);
}

TEST(SkeletonRules, BicgkIsOneRowPanel) {
  auto graph = ParsedText(
      "size m, n; matrix[m,n] A; vector[n] p, s; vector[m] r, q; input A, p, r;"
      "q = gemv(1.0, A, p); s = gemtv(1.0, A, r); return q, s;");
  const SkeletonAnswer answer = Ask(*graph, {"q", "s"});
  ASSERT_TRUE(answer.feasible) << answer.reason;
  EXPECT_EQ(answer.skeleton, &RowPanelSkeleton());
  EXPECT_EQ(answer.roles.phase_count, 1);
  EXPECT_EQ(answer.roles.rows.name, "m");
  EXPECT_EQ(answer.roles.columns.name, "n");
}

TEST(SkeletonRules, AtaxUsesTheRowResultOnePhaseLater) {
  auto graph = ParsedText(
      "size m, n; matrix[m,n] A; vector[n] x, y; vector[m] t; input A, x;"
      "t = gemv(1.0, A, x); y = gemtv(1.0, A, t); return y;");
  const SkeletonAnswer answer = Ask(*graph, {"t", "y"});
  ASSERT_TRUE(answer.feasible) << answer.reason;
  EXPECT_EQ(answer.roles.phases, (std::vector<int>{0, 1}));
  EXPECT_EQ(answer.roles.phase_count, 2);
}

TEST(SkeletonRules, AColumnResultSplitsTheKernel) {
  auto graph = ParsedText(
      "size m, n; matrix[m,n] A; vector[n] x, z; vector[m] y, w; input A, y, z;"
      "x = gemtv(1.0, A, y, 1.0, z); w = gemv(1.0, A, x); return x, w;");
  const SkeletonAnswer answer = Ask(*graph, {"x", "w"});
  EXPECT_FALSE(answer.feasible);
  EXPECT_THAT(answer.reason, HasSubstr("x is complete only after all rows, and w reads it"));
}

TEST(SkeletonRules, AVectorReductionIsFollowedByScalarsAlone) {
  auto graph = ParsedText(
      "size n; vector[n] x, y, z; scalar d, r; input x, y;"
      "d = dot(x, y); r = sqrt(d); z = scal(r, x); return z, r;");
  EXPECT_TRUE(Ask(*graph, {"d", "r"}).feasible);
  const SkeletonAnswer answer = Ask(*graph, {"d", "r", "z"});
  EXPECT_FALSE(answer.feasible);
  EXPECT_THAT(answer.reason, HasSubstr("complete only when the kernel ends"));
}

TEST(SkeletonRules, AVectorReadAlongBothDimensionsIsRefused) {
  auto graph = ParsedText(
      "size n; matrix[n,n] A; vector[n] x, t, y; input A, x;"
      "t = gemv(1.0, A, x); y = gemv(1.0, A, t); return y;");
  const SkeletonAnswer answer = Ask(*graph, {"t", "y"});
  EXPECT_FALSE(answer.feasible);
  EXPECT_THAT(answer.reason, HasSubstr("along the other"));
}

TEST(SkeletonRules, MatricesEntryByEntryAreOneLongVector) {
  auto graph =
      ParsedText("size m, n; matrix[m,n] A, B, C, D; input A, B; C = madd(A, B); D = exp(C); return D;");
  EXPECT_EQ(Ask(*graph, {"C", "D"}).skeleton, &VectorSkeleton());
}

TEST(SkeletonRules, SoftmaxIsOnePassOfThreePhases) {
  auto graph = ParsedText(
      "size m, n; matrix[m,n] X, D, E, Y; vector[m] a, s; input X;"
      "a = rowmax(X); D = rowsub(X, a); E = exp(D); s = rowsum(E); Y = rowdiv(E, s); return Y;");
  const SkeletonAnswer answer = Ask(*graph, {"a", "D", "E", "s", "Y"});
  ASSERT_TRUE(answer.feasible) << answer.reason;
  EXPECT_EQ(answer.roles.phases, (std::vector<int>{0, 1, 1, 1, 2}));
}

TEST(SkeletonRules, ListsAndCollectionsDoNotShareALoop) {
  auto graph = ParsedText(
      "size n; vector[n] x, y; scalar a; MATRIX3x3 A, B; input x, a, A;"
      "y = scal(a, x); B = scale(a, A); return y, B;");
  EXPECT_FALSE(Ask(*graph, {"y", "B"}).feasible);
}

TEST(LoadsAndStores, SharedInputsOnceAndInnerResultsNotAtAll) {
  auto graph = ParsedText(
      "size n; vector[n] x, y, z, w; input x; y = neg(x); z = vmul(x, y); w = vadd(y, z); return w, z;");
  NodeSet nodes;
  nodes.Add(0);
  nodes.Add(1);
  std::vector<ValueId> loads, stores;
  FindLoadsAndStores(*graph, nodes, &loads, &stores);
  ASSERT_EQ(loads.size(), 1u);
  EXPECT_EQ(graph->value(loads[0]).name, "x");
  ASSERT_EQ(stores.size(), 2u) << "y is read outside, z is an output";
}

}  // namespace
}  // namespace fusion
