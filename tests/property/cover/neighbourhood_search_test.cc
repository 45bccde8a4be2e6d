// What is found near other covers, and the bounds and cuts that large problems use, against brute force on
// small random DAGs.
#include "server/cover/neighbourhood_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "server/cover/conflict_cuts.h"
#include "server/cover/dual_ascent.h"
#include "server/cover/greedy_partition.h"
#include "server/cover/near_partitions.h"
#include "tests/property/cover/all_partitions.h"
#include "tests/property/cover/small_graphs.h"
#include "tests/random_dags.h"

namespace fusion {
namespace {

using testing::AllPartitions;
using testing::ConvexProblem;
using testing::DagOf;
using testing::Fault;
using testing::Soon;

CoverProblem RandomProblem(int round, std::mt19937& random) {
  const int count = std::uniform_int_distribution<int>(3, 9)(random);
  const uint64_t all = (uint64_t{1} << (count * (count - 1) / 2)) - 1;
  uint64_t edges = random() | uint64_t{random()} << 32;
  if (round % 2) edges &= random() | uint64_t{random()} << 32;
  return ConvexProblem(DagOf(count, edges & all), count <= 6 ? 1.0 : 0.4, 1, random);
}

std::string FaultOf(const CoverProblem& problem, const SetProblem& sets, const Partition& partition) {
  CoverSolution cover{.seconds = partition.seconds};
  for (int set : partition.sets) cover.columns.push_back(sets.sets[set].columns[0]);
  return Fault(problem, cover);
}

// All that may stand in a window of a partition: the partitions with the same other sets, no more and no
// fewer.
TEST(Window, HoldsWhatCanBeScheduledWithTheRest) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const CoverProblem problem = RandomProblem(round, random);
    const SetProblem sets = MakeSetProblem(problem).value();
    const std::vector<Partition> all = AllPartitions(problem, sets);
    const Partition& at = all[random() % all.size()];
    std::vector<int> positions, rest;
    for (size_t i = 0; i < at.sets.size(); ++i) {
      if (random() % 2)
        positions.push_back(static_cast<int>(i));
      else
        rest.push_back(at.sets[i]);
    }
    if (positions.empty()) continue;
    std::set<std::vector<int>> expected, found;
    for (const Partition& other : all) {
      if (!std::all_of(rest.begin(), rest.end(),
                       [&](int set) { return std::count(other.sets.begin(), other.sets.end(), set); }))
        continue;
      std::vector<int> ascending = other.sets;
      std::sort(ascending.begin(), ascending.end());
      expected.insert(ascending);
    }
    const Window window(sets, at, positions, {});
    CoverProblem inside{.node_count = window.problem().node_count, .successors = window.problem().successors};
    for (const SetProblem::Set& set : window.problem().sets)
      inside.columns.push_back({set.nodes, set.seconds});
    const CoverResult listed = BruteForceCovers(inside, {.count = 1'000'000}).value();
    for (const CoverSolution& cover : listed.covers) {
      const Partition whole = window.Replaced(cover.columns);
      EXPECT_EQ(FaultOf(problem, sets, whole), "");
      EXPECT_NEAR(whole.seconds - at.seconds, cover.seconds - window.inside().seconds, 1e-12);
      std::vector<int> ascending = whole.sets;
      std::sort(ascending.begin(), ascending.end());
      found.insert(ascending);
    }
    EXPECT_EQ(found, expected);
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(NeighbourhoodSearch, FindsTheBestWhereAWindowHoldsTheGraphAndIsNoWorseElsewhere) {
  std::mt19937 random(6);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const CoverProblem problem = RandomProblem(round, random);
    const SetProblem sets = MakeSetProblem(problem).value();
    const std::vector<Partition> all = AllPartitions(problem, sets);
    const std::vector<char> none(sets.sets.size(), 0);
    NeighbourhoodSearch search(sets, none, Soon());
    const Partition start = all[random() % all.size()];
    for (int nodes : {2, 4}) {
      const Partition better = search.Improve(start, nodes);
      EXPECT_EQ(FaultOf(problem, sets, better), "");
      EXPECT_LE(better.seconds, start.seconds);
    }
    // A graph of several parts is several windows.
    const Partition best = search.Improve(start, problem.node_count);
    EXPECT_EQ(FaultOf(problem, sets, best), "");
    EXPECT_GE(best.seconds, all[0].seconds * (1 - 1e-12));
    const std::vector<int> window = search.Grow(best, 0, problem.node_count);
    if (window.size() == best.sets.size()) {
      EXPECT_NEAR(best.seconds, all[0].seconds, 1e-12);
    }
    if (::testing::Test::HasFailure()) return;
  }
}

// As large problems are solved: relaxed solutions rounded and improved, reduced costs that leave sets out,
// and a small program.
TEST(BranchAndCut, FindsTheBestByWayOfOthersNearIt) {
  std::mt19937 random(12);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const CoverProblem problem = RandomProblem(round, random);
    const SetProblem sets = MakeSetProblem(problem).value();
    const std::vector<Partition> all = AllPartitions(problem, sets);
    const std::vector<char> none(sets.sets.size(), 0);
    for (const Partition* start : {static_cast<const Partition*>(nullptr), &all[random() % all.size()]}) {
      Relaxation relaxation(sets, 1e5);
      std::set<Cut> cuts;
      const auto answer =
          BranchAndCut(sets, relaxation, cuts, Soon(), [](const Partition&) {}).Solve(none, start, true);
      ASSERT_EQ(answer.result.outcome, PartitionOutcome::kOptimal) << answer.failure;
      EXPECT_EQ(FaultOf(problem, sets, answer.result.partition), "");
      EXPECT_NEAR(answer.result.partition.seconds, all[0].seconds, 1e-12);
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(BranchAndCut, FindsTheBestOfTwentyNodesByWayOfOthersNearIt) {
  for (unsigned seed = 100; seed < 140; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const FusibleSetProblem dag = testing::RandomDag(20, seed);
    const CoverProblem problem =
        testing::TrafficProblem(dag, EnumerateFusibleSets(dag, {.max_nodes = 5}).sets);
    const SetProblem sets = MakeSetProblem(problem).value();
    Relaxation relaxation(sets, 1e5);
    std::set<Cut> cuts;
    const std::vector<char> none(sets.sets.size(), 0);
    const auto answer =
        BranchAndCut(sets, relaxation, cuts, Soon(), [](const Partition&) {}).Solve(none, nullptr, true);
    ASSERT_EQ(answer.result.outcome, PartitionOutcome::kOptimal) << answer.failure;
    EXPECT_NEAR(answer.result.partition.seconds, DownSetCovers(problem, {})->covers[0].seconds, 1e-12);
  }
}

TEST(GreedyPartition, CanBeScheduled) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const CoverProblem problem = RandomProblem(round, random);
    const SetProblem sets = MakeSetProblem(problem).value();
    const auto greedy = GreedyPartition(sets, Soon());
    ASSERT_TRUE(greedy.has_value());
    ASSERT_EQ(FaultOf(problem, sets, *greedy), "");
    ASSERT_LE(greedy->seconds, SingleNodes(sets)->seconds);
  }
}

TEST(NearPartitions, AreOthersEachOnceInOrder) {
  std::mt19937 random(8);
  for (int round = 0; round < 100; ++round) {
    const CoverProblem problem = RandomProblem(round, random);
    const SetProblem sets = MakeSetProblem(problem).value();
    const std::vector<Partition> all = AllPartitions(problem, sets);
    const std::vector<Partition> near = NearPartitions(sets, all[0], 10, Soon(), std::chrono::seconds(20));
    std::set<std::vector<int>> seen;
    double last = 0;
    for (const Partition& partition : near) {
      ASSERT_EQ(FaultOf(problem, sets, partition), "");
      ASSERT_GE(partition.seconds, last - 1e-15);
      last = partition.seconds;
      std::vector<int> ascending = partition.sets;
      std::sort(ascending.begin(), ascending.end());
      ASSERT_TRUE(seen.insert(ascending).second);
    }
    std::vector<int> best = all[0].sets;
    std::sort(best.begin(), best.end());
    ASSERT_FALSE(seen.contains(best));
    if (all.size() > 1) {
      ASSERT_FALSE(near.empty());
    }
  }
}

TEST(DualAscent, IsABoundFromAnyPrices) {
  std::mt19937 random(9);
  for (int round = 0; round < 300; ++round) {
    const CoverProblem problem = RandomProblem(round, random);
    const SetProblem sets = MakeSetProblem(problem).value();
    std::vector<double> prices(sets.node_count);
    for (double& price : prices) price = std::uniform_real_distribution<double>(-1e-5, 3e-5)(random);
    const double best = BruteForceCovers(problem, {})->covers[0].seconds;
    for (const std::vector<double>& bound : {FeasiblePrices(sets, prices), SharePrices(sets)}) {
      double sum = 0;
      for (double price : bound) sum += price;
      ASSERT_LE(sum, best * (1 + 1e-12));
      for (const SetProblem::Set& set : sets.sets) {
        double held = 0;
        for (int node : set.members) held += bound[node];
        ASSERT_LE(held, set.seconds + 1e-15);
      }
    }
  }
}

TEST(CliqueCuts, HoldForEveryCover) {
  std::mt19937 random(10);
  int cuts_seen = 0;
  for (int round = 0; round < 300; ++round) {
    const CoverProblem problem = RandomProblem(round, random);
    const SetProblem sets = MakeSetProblem(problem).value();
    std::vector<std::pair<int, double>> shares;
    std::vector<int> near;
    for (size_t set = 0; set < sets.sets.size(); ++set) {
      near.push_back(static_cast<int>(set));
      if (random() % 3 == 0) shares.emplace_back(set, 0.5);
    }
    std::shuffle(near.begin(), near.end(), random);
    const std::vector<Cut> cuts = CliqueCuts(sets, shares, near, Soon());
    cuts_seen += static_cast<int>(cuts.size());
    for (const Partition& partition : AllPartitions(problem, sets))
      for (const Cut& cut : cuts) {
        int held = 0;
        for (int set : partition.sets) held += std::binary_search(cut.sets.begin(), cut.sets.end(), set);
        ASSERT_LE(held, cut.limit);
      }
  }
  EXPECT_GT(cuts_seen, 100);
}

}  // namespace
}  // namespace fusion
