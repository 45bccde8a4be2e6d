// lp_solve, brute force and dynamic programming agree on all DAGs of up to 5 nodes and on random larger ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "tests/property/cover/small_graphs.h"
#include "tests/random_dags.h"

namespace fusion {
namespace {

using testing::ConvexProblem;
using testing::DagOf;
using testing::Fault;

// Compares the `count` best covers of both engines. Covers of equal time may come in any order, so times are
// compared.
void ExpectEnginesAgree(const CoverProblem& problem, int count) {
  CoverOptions options;
  options.count = count;
  const auto solved = SolveCovers(problem, options);
  const auto listed = BruteForceCovers(problem, options);
  ASSERT_TRUE(solved.ok()) << solved.status();
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_TRUE(solved->proved_optimal);
  EXPECT_TRUE(solved->notes.empty()) << solved->notes[0];
  EXPECT_EQ(solved->exhausted, listed->exhausted);
  ASSERT_EQ(solved->covers.size(), listed->covers.size());
  std::set<std::vector<int>> seen;
  for (size_t i = 0; i < solved->covers.size(); ++i) {
    const CoverSolution& cover = solved->covers[i];
    EXPECT_EQ(Fault(problem, cover), "");
    EXPECT_EQ(Fault(problem, listed->covers[i]), "");
    EXPECT_NEAR(cover.seconds, listed->covers[i].seconds, 1e-9 * cover.seconds) << "cover " << i;
    EXPECT_GE(cover.seconds, solved->covers[i > 0 ? i - 1 : 0].seconds);
    std::vector<int> columns = cover.columns;
    std::sort(columns.begin(), columns.end());
    EXPECT_TRUE(seen.insert(columns).second) << "cover " << i << " is a repetition";
  }
  EXPECT_EQ(solved->bound_seconds, solved->covers[0].seconds);

  const auto by_down_sets = DownSetCovers(problem, options);
  ASSERT_TRUE(by_down_sets.ok()) << by_down_sets.status();
  ASSERT_EQ(by_down_sets->covers.size(), 1u);
  EXPECT_EQ(Fault(problem, by_down_sets->covers[0]), "");
  EXPECT_NEAR(by_down_sets->covers[0].seconds, listed->covers[0].seconds, 1e-9 * listed->covers[0].seconds);
}

TEST(CoverEngines, AgreeOnAllDagsOfUpToFiveNodes) {
  std::mt19937 random(20240501);
  for (int count = 1; count <= 5; ++count) {
    for (uint64_t edges = 0; edges < uint64_t{1} << (count * (count - 1) / 2); ++edges) {
      SCOPED_TRACE("nodes " + std::to_string(count) + " edges " + std::to_string(edges));
      ExpectEnginesAgree(ConvexProblem(DagOf(count, edges), 1.0, 2, random), 5);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

// The order of nodes of a problem need not be topological.
CoverProblem Renumbered(const CoverProblem& problem, std::mt19937& random) {
  std::vector<int> number(problem.node_count);
  for (int node = 0; node < problem.node_count; ++node) number[node] = node;
  std::shuffle(number.begin(), number.end(), random);
  CoverProblem result;
  result.node_count = problem.node_count;
  result.successors.resize(problem.node_count);
  for (int node = 0; node < problem.node_count; ++node)
    for (int next : problem.successors[node]) result.successors[number[node]].push_back(number[next]);
  for (const CoverProblem::Column& column : problem.columns) {
    NodeSet nodes;
    for (int node : column.nodes.Members()) nodes.Add(number[node]);
    result.columns.push_back({nodes, column.seconds});
  }
  std::shuffle(result.columns.begin(), result.columns.end(), random);
  return result;
}

TEST(CoverEngines, AgreeOnRandomDagsOfUpToTenNodes) {
  std::mt19937 random(7);
  for (int round = 0; round < 1000; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const int count = std::uniform_int_distribution<int>(4, 10)(random);
    // Few, some, or many edges.
    const uint64_t all = (uint64_t{1} << (count * (count - 1) / 2)) - 1;
    uint64_t edges = random() | uint64_t{random()} << 32;
    if (round % 3 == 0) edges &= random() | uint64_t{random()} << 32;
    if (round % 3 == 2) edges |= random() | uint64_t{random()} << 32;
    const double keep = count <= 7 ? 1.0 : count <= 9 ? 0.35 : 0.2;
    CoverProblem problem = ConvexProblem(DagOf(count, edges & all), keep, round % 2 + 1, random);
    if (round % 5 == 0) problem = Renumbered(problem, random);
    ExpectEnginesAgree(problem, 12);
    if (::testing::Test::HasFailure()) return;
  }
}

// Equal and whole times make very many ties.
TEST(CoverEngines, AgreeOnTies) {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const int count = std::uniform_int_distribution<int>(2, 6)(random);
    const uint64_t all = (uint64_t{1} << (count * (count - 1) / 2)) - 1;
    CoverProblem problem = ConvexProblem(DagOf(count, random() & all), 1.0, 2, random);
    for (CoverProblem::Column& column : problem.columns)
      column.seconds = round % 2 ? 1.0 : 1.0 + std::uniform_int_distribution<int>(0, 2)(random);
    ExpectEnginesAgree(problem, 20);
    if (::testing::Test::HasFailure()) return;
  }
}

// Larger ones, against dynamic programming over down-sets. Whole times of a launch and the traffic, so that
// there are ties, kernels that wait for each other, and relaxed solutions that take sets in part.
TEST(CoverEngines, AgreeWithDownSetsOnGraphsOfTwentyNodes) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const FusibleSetProblem dag = testing::RandomDag(20, seed);
    const CoverProblem problem =
        testing::TrafficProblem(dag, EnumerateFusibleSets(dag, {.max_nodes = 5}).sets);
    const auto solved = SolveCovers(problem, {});
    const auto by_down_sets = DownSetCovers(problem, {});
    ASSERT_TRUE(solved.ok()) << solved.status();
    ASSERT_TRUE(by_down_sets.ok()) << by_down_sets.status();
    EXPECT_TRUE(solved->proved_optimal);
    EXPECT_TRUE(solved->notes.empty()) << solved->notes[0];
    EXPECT_EQ(Fault(problem, solved->covers[0]), "");
    EXPECT_NEAR(solved->covers[0].seconds, by_down_sets->covers[0].seconds, 1e-9 * solved->covers[0].seconds);
  }
}

// A chain is divided best as a shortest path divides it, however long it is.
TEST(CoverEngines, AgreeWithShortestPathsOnLongChains) {
  std::mt19937 random(3);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int length : {40, 200, 400}) {
    SCOPED_TRACE("length " + std::to_string(length));
    CoverProblem problem{.node_count = length};
    problem.successors.resize(length);
    std::vector<double> best(length + 1, INFINITY);
    best[0] = 0;
    for (int first = 0; first < length; ++first) {
      if (first + 1 < length) problem.successors[first] = {first + 1};
      NodeSet nodes;
      for (int end = first + 1; end <= std::min(length, first + 6); ++end) {
        nodes.Add(end - 1);
        const double seconds = 1e-6 * (1 + 0.3 * (end - first) * (0.5 + unit(random)));
        problem.columns.push_back({nodes, seconds});
        best[end] = std::min(best[end], best[first] + seconds);
      }
    }
    const auto solved = SolveCovers(problem, {.count = 3});
    ASSERT_TRUE(solved.ok()) << solved.status();
    EXPECT_TRUE(solved->proved_optimal);
    ASSERT_EQ(solved->covers.size(), 3u);
    EXPECT_NEAR(solved->covers[0].seconds, best[length], 1e-9 * best[length]);
    for (const CoverSolution& cover : solved->covers) EXPECT_EQ(Fault(problem, cover), "");
  }
}

// Out of time there still is an answer that can run, and a bound below it.
TEST(CoverEngines, GiveAValidAnswerAndABoundOfLargeGraphs) {
  const FusibleSetProblem dag = testing::RandomDag(300, 2);
  const CoverProblem problem = testing::TrafficProblem(
      dag, EnumerateFusibleSets(dag, {.max_nodes = 6, .max_candidates = 100'000'000}).sets);
  const auto solved = SolveCovers(problem, {.count = 2, .time_limit = std::chrono::seconds(2)});
  ASSERT_TRUE(solved.ok()) << solved.status();
  for (const CoverSolution& cover : solved->covers) EXPECT_EQ(Fault(problem, cover), "");
  EXPECT_GT(solved->bound_seconds, 0);
  EXPECT_LE(solved->bound_seconds, solved->covers[0].seconds);
  EXPECT_EQ(solved->proved_optimal, solved->bound_seconds == solved->covers[0].seconds);
}

// Lists of covers of graphs that are too large to rank all: each once, in order, and each can run.
TEST(CoverEngines, ListCoversOfLargeGraphs) {
  const FusibleSetProblem dag = testing::RandomDag(700, 3);
  const CoverProblem problem = testing::TrafficProblem(
      dag, EnumerateFusibleSets(dag, {.max_nodes = 4, .max_candidates = 100'000'000}).sets);
  const auto solved = SolveCovers(problem, {.count = 20, .time_limit = std::chrono::seconds(2)});
  ASSERT_TRUE(solved.ok()) << solved.status();
  std::set<std::vector<int>> seen;
  for (size_t i = 0; i < solved->covers.size(); ++i) {
    EXPECT_EQ(Fault(problem, solved->covers[i]), "");
    EXPECT_GE(solved->covers[i].seconds, solved->covers[i > 0 ? i - 1 : 0].seconds);
    std::vector<int> columns = solved->covers[i].columns;
    std::sort(columns.begin(), columns.end());
    EXPECT_TRUE(seen.insert(columns).second);
  }
  EXPECT_LE(solved->bound_seconds, solved->covers[0].seconds);
}

}  // namespace
}  // namespace fusion
