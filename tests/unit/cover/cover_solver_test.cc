#include "server/cover/cover_solver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fusion {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

NodeSet Set(std::initializer_list<int> nodes) {
  NodeSet set;
  for (int node : nodes) set.Add(node);
  return set;
}

CoverOptions Count(int count) {
  CoverOptions options;
  options.count = count;
  return options;
}

// Nodes a, b, c, d = 0, 1, 2, 3 with the edges c->b, a->b, c->d, a->d: {a,d} and {c,b} are convex, but each
// waits for the other.
CoverProblem Counterexample() {
  CoverProblem problem;
  problem.node_count = 4;
  problem.successors = {{1, 3}, {}, {1, 3}, {}};
  problem.columns = {{Set({0}), 2}, {Set({1}), 2},    {Set({2}), 2},
                     {Set({3}), 2}, {Set({0, 3}), 1}, {Set({2, 1}), 1}};
  return problem;
}

TEST(SolveCovers, TakesNoCoverThatCannotBeScheduled) {
  const auto result = SolveCovers(Counterexample(), Count(10));
  ASSERT_TRUE(result.ok()) << result.status();
  // {a,d} with {c,b} would take 2. What is left: one of the pairs (5), or none (8).
  ASSERT_EQ(result->covers.size(), 3u);
  EXPECT_THAT(result->covers[0].columns, ElementsAre(0, 5, 3));  // a, {c,b}, d
  EXPECT_THAT(result->covers[1].columns, ElementsAre(2, 4, 1));  // c, {a,d}, b
  EXPECT_THAT(result->covers[2].columns, ElementsAre(0, 2, 1, 3));
  EXPECT_EQ(result->covers[0].seconds, 5);
  EXPECT_EQ(result->covers[1].seconds, 5);
  EXPECT_EQ(result->covers[2].seconds, 8);
  EXPECT_TRUE(result->proved_optimal);
  EXPECT_EQ(result->bound_seconds, 5);
  EXPECT_TRUE(result->exhausted);
  EXPECT_THAT(result->notes, IsEmpty());
}

TEST(SolveCovers, WritesTheProgramWithItsCuts) {
  std::string text;
  CoverOptions options;
  options.lp_text = &text;
  ASSERT_TRUE(SolveCovers(Counterexample(), options).ok());
  EXPECT_THAT(text, HasSubstr("min:"));
  EXPECT_THAT(text, HasSubstr("node2"));
  EXPECT_THAT(text, HasSubstr("+s0_3 +s1_2 <= 1"));
  EXPECT_THAT(text, HasSubstr("\nint "));
}

TEST(SolveCovers, RanksColumnsWithEqualNodes) {
  CoverProblem problem;
  problem.node_count = 2;
  problem.successors = {{1}, {}};
  problem.columns = {{Set({0}), 5},    {Set({0, 1}), 4}, {Set({1}), 3},
                     {Set({0, 1}), 9}, {Set({0}), 2},    {Set({0, 1}), 4.5}};
  const auto result = SolveCovers(problem, Count(5));
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->covers.size(), 5u);
  EXPECT_THAT(result->covers[0].columns, ElementsAre(1));
  EXPECT_THAT(result->covers[1].columns, ElementsAre(5));
  EXPECT_THAT(result->covers[2].columns, ElementsAre(4, 2));
  EXPECT_THAT(result->covers[3].columns, ElementsAre(0, 2));
  EXPECT_THAT(result->covers[4].columns, ElementsAre(3));
  EXPECT_FALSE(result->exhausted);
  const auto more = SolveCovers(problem, Count(6));
  ASSERT_TRUE(more.ok());
  EXPECT_EQ(more->covers.size(), 5u);
  EXPECT_TRUE(more->exhausted);
}

TEST(SolveCovers, OrdersSetsBySmallestNodeAmongThoseThatCanRun) {
  CoverProblem problem;
  problem.node_count = 4;
  problem.successors = {{}, {}, {0}, {}};
  problem.columns = {{Set({3}), 1}, {Set({2}), 1}, {Set({1}), 1}, {Set({0}), 1}};
  const auto result = SolveCovers(problem, Count(1));
  ASSERT_TRUE(result.ok());
  EXPECT_THAT(result->covers[0].columns, ElementsAre(2, 1, 3, 0));  // nodes 1, 2, 0, 3
}

TEST(SolveCovers, CoversAGraphWithoutNodesByNothing) {
  const auto result = SolveCovers(CoverProblem(), Count(2));
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->covers.size(), 1u);
  EXPECT_THAT(result->covers[0].columns, IsEmpty());
  EXPECT_EQ(result->covers[0].seconds, 0);
  EXPECT_TRUE(result->exhausted);
}

TEST(SolveCovers, LeavesOutColumnsThatAreNotConvexAndSaysSo) {
  CoverProblem problem;
  problem.node_count = 3;
  problem.successors = {{1}, {2}, {}};
  problem.columns = {{Set({0, 2}), 0.1}, {Set({0}), 1}, {Set({1}), 1}, {Set({2}), 1}};
  const auto result = SolveCovers(problem, Count(5));
  ASSERT_TRUE(result.ok());
  ASSERT_EQ(result->covers.size(), 1u);
  EXPECT_THAT(result->covers[0].columns, ElementsAre(1, 2, 3));
  EXPECT_THAT(result->notes, ElementsAre(HasSubstr("not convex")));
}

TEST(SolveCovers, WorksWithTimesOfAnyScale) {
  for (double scale : {1e-12, 1e-6, 1.0, 1e9}) {
    CoverProblem problem = Counterexample();
    for (auto& column : problem.columns) column.seconds *= scale;
    const auto result = SolveCovers(problem, Count(10));
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(result->covers.size(), 3u) << scale;
    EXPECT_DOUBLE_EQ(result->covers[2].seconds, 8 * scale);
  }
}

// Chain 0 -> 1 -> ... of n nodes with all intervals of up to `longest` nodes.
CoverProblem Chain(int n, int longest) {
  CoverProblem problem;
  problem.node_count = n;
  problem.successors.resize(n);
  for (int node = 0; node + 1 < n; ++node) problem.successors[node] = {node + 1};
  for (int first = 0; first < n; ++first) {
    NodeSet nodes;
    for (int last = first; last < n && last < first + longest; ++last) {
      nodes.Add(last);
      problem.columns.push_back({nodes, 1 + 0.01 * ((first * 7 + last * 13) % 29) + 0.1 * (last - first)});
    }
  }
  return problem;
}

TEST(SolveCovers, AgreesWithDownSetsOnGraphsTooLargeToList) {
  const auto solved = SolveCovers(Chain(24, 6), Count(1));
  const auto by_down_sets = DownSetCovers(Chain(24, 6), Count(1));
  ASSERT_TRUE(solved.ok());
  ASSERT_TRUE(by_down_sets.ok());
  EXPECT_TRUE(solved->proved_optimal);
  EXPECT_NEAR(solved->covers[0].seconds, by_down_sets->covers[0].seconds, 1e-9);
}

TEST(SolveCovers, GivesACoverAndABoundWhenThereIsNoTime) {
  CoverOptions options;
  options.count = 3;
  options.time_limit = std::chrono::nanoseconds(1);
  const CoverProblem problem = Chain(60, 5);
  const auto result = SolveCovers(problem, options);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->covers[0].columns.size(), 60u);  // each node by itself
  EXPECT_FALSE(result->proved_optimal);
  EXPECT_FALSE(result->exhausted);
  EXPECT_GT(result->bound_seconds, 0);
  EXPECT_THAT(result->notes, Contains(HasSubstr("not finished")));
  const auto best = SolveCovers(problem, Count(1));
  ASSERT_TRUE(best.ok());
  EXPECT_TRUE(best->proved_optimal);
  EXPECT_LE(result->bound_seconds, best->covers[0].seconds);
}

TEST(SolveCovers, ReportsThatNoCoverWasFoundInTime) {
  CoverProblem problem;  // no node has a column of its own
  problem.node_count = 4;
  problem.successors = {{1}, {2}, {3}, {}};
  problem.columns = {{Set({0, 1}), 1},    {Set({1, 2}), 1},    {Set({2, 3}), 1},
                     {Set({0, 1, 2}), 1}, {Set({1, 2, 3}), 1}, {Set({0, 1, 2, 3}), 5}};
  CoverOptions options;
  options.time_limit = std::chrono::nanoseconds(1);
  EXPECT_EQ(SolveCovers(problem, options).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(SolveCovers(problem, Count(1)).ok());
}

// All engines check alike.
class CoverErrors : public ::testing::Test {
 protected:
  static void ExpectInvalid(const CoverProblem& problem, const std::string& text) {
    for (auto engine : {SolveCovers, BruteForceCovers, DownSetCovers}) {
      const auto result = engine(problem, CoverOptions());
      EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(result.status().message()), HasSubstr(text));
    }
  }
};

TEST_F(CoverErrors, NodeWithoutColumn) {
  CoverProblem problem = Counterexample();
  problem.columns.erase(problem.columns.begin() + 2);
  problem.columns.pop_back();
  ExpectInvalid(problem, "node 2 is in no column");
}

TEST_F(CoverErrors, NodeInColumnsThatAreNotConvexOnly) {
  CoverProblem problem;
  problem.node_count = 3;
  problem.successors = {{1}, {2}, {}};
  problem.columns = {{Set({0, 2}), 1}, {Set({1}), 1}};
  ExpectInvalid(problem, "node 0 is in no convex column");
}

TEST_F(CoverErrors, NoSchedulableCover) {
  CoverProblem problem = Counterexample();
  problem.columns.erase(problem.columns.begin(), problem.columns.begin() + 4);
  ExpectInvalid(problem, "schedulable");
}

TEST_F(CoverErrors, NoExactCover) {
  CoverProblem problem;
  problem.node_count = 3;
  problem.successors = {{1}, {2}, {}};
  problem.columns = {{Set({0, 1}), 1}, {Set({1, 2}), 1}};
  ExpectInvalid(problem, "no choice of columns");
}

TEST_F(CoverErrors, TimesThatAreNotFiniteAndPositive) {
  for (double seconds : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    CoverProblem problem = Counterexample();
    problem.columns[3].seconds = seconds;
    ExpectInvalid(problem, "column 3: its time must be finite and positive");
  }
}

TEST_F(CoverErrors, IndicesAndCycles) {
  CoverProblem problem = Counterexample();
  problem.columns[1].nodes.Add(4);
  ExpectInvalid(problem, "column 1 names node 4 of 4");
  problem = Counterexample();
  problem.columns[1].nodes = NodeSet();
  ExpectInvalid(problem, "column 1 has no nodes");
  problem = Counterexample();
  problem.successors[1] = {7};
  ExpectInvalid(problem, "node 7 of 4");
  problem = Counterexample();
  problem.successors[1] = {0};
  ExpectInvalid(problem, "cycle");
  problem = Counterexample();
  problem.successors.pop_back();
  ExpectInvalid(problem, "3 successor lists for 4 nodes");
}

TEST(SolveCoversOptions, MustMakeSense) {
  EXPECT_EQ(SolveCovers(Counterexample(), Count(0)).status().code(), absl::StatusCode::kInvalidArgument);
  CoverOptions options;
  options.time_limit = std::chrono::seconds(0);
  EXPECT_EQ(SolveCovers(Counterexample(), options).status().code(), absl::StatusCode::kInvalidArgument);
  options.time_limit = std::chrono::duration<double>(1e300);
  EXPECT_TRUE(SolveCovers(Counterexample(), options).ok());
}

// Two chains side by side, node 2 i + 1 after node 2 i.
CoverProblem Ladder(int rungs) {
  CoverProblem problem;
  problem.node_count = 2 * rungs;
  problem.successors.resize(2 * rungs);
  auto add = [&](NodeSet nodes, int a, int b) {
    problem.columns.push_back({std::move(nodes), 0.4 + 0.6 * (b - a + 1) + 0.01 * ((a * 7 + b * 13) % 31)});
  };
  for (int node = 0; node < 2 * rungs; ++node) {
    if (node + 2 < 2 * rungs) problem.successors[node].push_back(node + 2);
    if (node % 2 == 0) problem.successors[node].push_back(node + 1);
    add(Set({node}), node, node);
    if (node + 2 < 2 * rungs) add(Set({node, node + 2}), node, node + 2);
    if (node % 2 == 0) add(Set({node, node + 1}), node, node + 1);
    if (node % 2 == 0 && node + 3 < 2 * rungs) add(Set({node, node + 1, node + 2, node + 3}), node, node + 3);
  }
  return problem;
}

TEST(DownSetCovers, AgreeOnNarrowGraphsOfHundredsOfNodes) {
  for (const CoverProblem& problem : {Chain(200, 6), Chain(600, 3), Ladder(100)}) {
    SCOPED_TRACE(problem.columns.size());
    const auto by_down_sets = DownSetCovers(problem, Count(1));
    ASSERT_TRUE(by_down_sets.ok()) << by_down_sets.status();
    EXPECT_TRUE(CheckCover(problem, by_down_sets->covers[0]).ok());
    const auto solved = SolveCovers(problem, Count(1));
    ASSERT_TRUE(solved.ok()) << solved.status();
    EXPECT_TRUE(solved->proved_optimal);
    EXPECT_NEAR(solved->covers[0].seconds, by_down_sets->covers[0].seconds,
                1e-9 * by_down_sets->covers[0].seconds);
  }
}

TEST(DownSetCovers, RefuseWideGraphs) {
  CoverProblem problem;  // 2^18 down-sets
  problem.node_count = 18;
  problem.successors.resize(18);
  for (int node = 0; node < 18; ++node) problem.columns.push_back({Set({node}), 1});
  const auto result = DownSetCovers(problem, Count(1));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("too wide"));
}

// Each cover that is not one is refused, and says why.
TEST(CheckCover, RefusesWhatIsNoCover) {
  const CoverProblem problem = Counterexample();  // columns 0 to 3: a, b, c, d; 4: {a,d}; 5: {c,b}
  EXPECT_TRUE(CheckCover(problem, {{0, 2, 1, 3}, 8}).ok());
  const struct {
    CoverSolution cover;
    std::string reason;
  } kWrong[] = {{{{0, 2, 1}, 6}, "does not compute node 3"},
                {{{0, 2, 1, 3, 3}, 10}, "node 3 twice"},
                {{{0, 5, 4}, 4}, "node 0 twice"},
                {{{4, 5}, 2}, "before node"},
                {{{0, 1, 2, 3}, 8}, "runs node 1 before node 2"},
                {{{0, 2, 1, 6}, 8}, "column 6 of 6"},
                {{{0, 2, 1, -1}, 8}, "column -1 of 6"},
                {{{0, 2, 1, 3}, 7.9}, "not 7.9 s"},
                {{{0, 2, 1, 3}, std::nan("")}, "not nan s"}};
  for (const auto& [cover, reason] : kWrong)
    EXPECT_THAT(std::string(CheckCover(problem, cover).message()), HasSubstr(reason));
}

TEST(CheckedCovers, LeaveOutWhatIsWrongAndClaimNoMoreThanIsKnown) {
  const CoverProblem problem = Counterexample();
  const CoverResult right = SolveCovers(problem, Count(10)).value();
  ASSERT_EQ(right.covers.size(), 3u);
  EXPECT_THAT(CheckedCovers(problem, right)->notes, IsEmpty());
  EXPECT_TRUE(CheckedCovers(problem, right)->proved_optimal);

  CoverResult corrupted = right;
  corrupted.covers[0].columns.pop_back();
  const auto rest = CheckedCovers(problem, corrupted);
  ASSERT_TRUE(rest.ok());
  EXPECT_THAT(rest->covers, ElementsAre(right.covers[1], right.covers[2]));
  EXPECT_FALSE(rest->proved_optimal);
  EXPECT_FALSE(rest->exhausted);
  EXPECT_THAT(rest->notes, ElementsAre(HasSubstr("1 covers were refused")));

  CoverResult boastful = right;
  boastful.bound_seconds = right.covers[0].seconds * 1.01;
  const auto modest = CheckedCovers(problem, boastful);
  ASSERT_TRUE(modest.ok());
  EXPECT_EQ(modest->bound_seconds, 0);
  EXPECT_FALSE(modest->proved_optimal);
  EXPECT_THAT(modest->notes, ElementsAre(HasSubstr("is above a cover")));

  CoverResult none = right;
  for (CoverSolution& cover : none.covers) cover.seconds *= 2;
  EXPECT_EQ(CheckedCovers(problem, none).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace fusion
