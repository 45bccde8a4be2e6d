// What leaves a part of a problem: sets that are decided around a window, cutoffs, and programs made smaller,
// against brute force on small random DAGs and dynamic programming on larger ones.
#include "server/cover/core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <set>

#include "server/cover/branch_and_cut.h"
#include "server/cover/conflict_cuts.h"
#include "server/cover/dual_ascent.h"
#include "server/cover/subgradient.h"
#include "server/cover/subset_row_cuts.h"
#include "server/cover/window.h"
#include "server/cover/zero_half_cuts.h"
#include "tests/property/cover/all_partitions.h"
#include "tests/property/cover/small_graphs.h"
#include "tests/random_dags.h"

namespace fusion {
namespace {

using testing::AllPartitions;
using testing::ConvexProblem;
using testing::DagOf;
using testing::Soon;

CoverProblem RandomProblem(std::mt19937& random) {
  const int count = std::uniform_int_distribution<int>(3, 8)(random);
  const uint64_t all = (uint64_t{1} << (count * (count - 1) / 2)) - 1;
  return ConvexProblem(DagOf(count, random() & random() & all), count <= 6 ? 1.0 : 0.5, 1, random);
}

std::set<int> SetOf(const std::vector<int>& sets) { return {sets.begin(), sets.end()}; }

TEST(UndecidedPositions, LeaveInTheWindowAllThatIsNotLeftOut) {
  std::mt19937 random(21);
  int decided_somewhere = 0;
  for (int round = 0; round < 1000; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const CoverProblem problem = RandomProblem(random);
    const SetProblem sets = MakeSetProblem(problem).value();
    const std::vector<Partition> all = AllPartitions(problem, sets);
    const Partition& at = all[random() % all.size()];
    std::vector<char> out(sets.sets.size());
    for (char& one : out) one = random() % 4 > 0;
    for (int set : at.sets) out[set] = 0;
    std::set<std::set<int>> expected, found;
    for (const Partition& other : all)
      if (std::none_of(other.sets.begin(), other.sets.end(), [&](int set) { return out[set]; }))
        expected.insert(SetOf(other.sets));
    const std::vector<int> undecided = UndecidedPositions(sets, at, &out);
    decided_somewhere += undecided.size() < at.sets.size();
    if (undecided.empty()) {
      EXPECT_EQ(expected.size(), 1u);
      continue;
    }
    const Window window(sets, at, undecided, out);
    EXPECT_NEAR(window.outside_seconds() + window.inside().seconds, at.seconds, 1e-12);
    CoverProblem inside{.node_count = window.problem().node_count, .successors = window.problem().successors};
    for (const SetProblem::Set& set : window.problem().sets)
      inside.columns.push_back({set.nodes, set.seconds});
    const CoverResult listed = BruteForceCovers(inside, {.count = 1'000'000}).value();
    for (const CoverSolution& cover : listed.covers) found.insert(SetOf(window.Replaced(cover.columns).sets));
    EXPECT_EQ(found, expected);
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(decided_somewhere, 100);
}

// A cut of the whole holds for a partition around a window exactly when what it says of the window does.
TEST(Window, KeepsCutsOfTheWhole) {
  std::mt19937 random(22);
  int broken = 0;
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const CoverProblem problem = RandomProblem(random);
    const SetProblem sets = MakeSetProblem(problem).value();
    const std::vector<Partition> all = AllPartitions(problem, sets);
    const Partition& at = all[random() % all.size()];
    std::vector<int> positions;
    for (size_t i = 0; i < at.sets.size(); ++i)
      if (random() % 3) positions.push_back(static_cast<int>(i));
    if (positions.empty()) continue;
    const Window window(sets, at, positions, {});
    Cut cut;
    for (size_t set = 0; set < sets.sets.size(); ++set)
      cut.sets.insert(cut.sets.end(), std::array{0, 0, 1, 2}[random() % 4], static_cast<int>(set));
    auto times = [](const std::vector<int>& chosen, const Cut& of) {
      int sum = 0;
      for (int set : chosen) sum += static_cast<int>(std::count(of.sets.begin(), of.sets.end(), set));
      return sum;
    };
    cut.limit = times(at.sets, cut);
    const std::optional<Cut> inside = window.Inside(cut);
    CoverProblem smaller{.node_count = window.problem().node_count,
                         .successors = window.problem().successors};
    for (const SetProblem::Set& set : window.problem().sets)
      smaller.columns.push_back({set.nodes, set.seconds});
    const CoverResult listed = BruteForceCovers(smaller, {.count = 1'000'000}).value();
    for (const CoverSolution& cover : listed.covers) {
      const bool holds = times(window.Replaced(cover.columns).sets, cut) <= cut.limit;
      EXPECT_EQ(holds, !inside || times(cover.columns, *inside) <= inside->limit);
      broken += !holds;
    }
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(broken, 100);
}

TEST(BranchAndCut, FindsTheBestThatIsFasterThanTheCutoffOrProvesThatThereIsNone) {
  std::mt19937 random(23);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const CoverProblem problem = RandomProblem(random);
    const SetProblem sets = MakeSetProblem(problem).value();
    const std::vector<Partition> all = AllPartitions(problem, sets);
    const double cutoff = all[0].seconds * std::uniform_real_distribution<double>(0.8, 1.2)(random);
    Relaxation relaxation(sets, 1e5);
    std::set<Cut> cuts;
    const auto answer = BranchAndCut(sets, relaxation, cuts, Soon(), [](const Partition&) {})
                            .Solve(std::vector<char>(sets.sets.size(), 0), &all.back(), false,
                                   {.floor = all[0].seconds * (round % 2 ? 0.99 : 0), .cutoff = cutoff});
    EXPECT_EQ(answer.failure, "");
    EXPECT_EQ(answer.result.outcome, PartitionOutcome::kOptimal);
    EXPECT_NEAR(answer.bound, std::min(all[0].seconds, cutoff), 1e-8 * cutoff);
    if (all[0].seconds < cutoff * (1 - 1e-6)) {
      EXPECT_NEAR(answer.result.partition.seconds, all[0].seconds, 1e-12);
    }
    if (::testing::Test::HasFailure()) return;
  }
}

// Times that are multiples of nothing: cutoffs go up by shares of the gap.
TEST(SolveCovers, AgreesWithDownSetsForTimesWithoutAUnit) {
  std::mt19937 random(24);
  std::uniform_real_distribution<double> change(0.9, 1.1);
  for (unsigned seed = 200; seed < 230; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const FusibleSetProblem dag = testing::RandomDag(20, seed);
    CoverProblem problem = testing::TrafficProblem(dag, EnumerateFusibleSets(dag, {.max_nodes = 6}).sets);
    for (CoverProblem::Column& column : problem.columns) column.seconds *= change(random);
    const auto solved = SolveCovers(problem, {});
    const auto by_down_sets = DownSetCovers(problem, {});
    ASSERT_TRUE(solved.ok() && by_down_sets.ok());
    EXPECT_TRUE(solved->proved_optimal);
    EXPECT_TRUE(solved->notes.empty()) << solved->notes[0];
    EXPECT_EQ(testing::Fault(problem, solved->covers[0]), "");
    EXPECT_NEAR(solved->covers[0].seconds, by_down_sets->covers[0].seconds, 1e-9 * solved->covers[0].seconds);
  }
}

TEST(SubgradientPrices, LeadToABoundCloserToTheBest) {
  int closer = 0;
  for (unsigned seed = 300; seed < 320; ++seed) {
    const FusibleSetProblem dag = testing::RandomDag(20, seed);
    const CoverProblem problem =
        testing::TrafficProblem(dag, EnumerateFusibleSets(dag, {.max_nodes = 5}).sets);
    const SetProblem sets = MakeSetProblem(problem).value();
    auto bound = [&](const std::vector<double>& prices) {
      double sum = 0;
      for (double price : FeasiblePrices(sets, prices)) sum += price;
      return sum;
    };
    const std::vector<double> first = SharePrices(sets);
    const double after = bound(SubgradientPrices(sets, first, 300));
    EXPECT_LE(after, DownSetCovers(problem, {})->covers[0].seconds * (1 + 1e-12));
    closer += after > bound(first);
  }
  EXPECT_GE(closer, 18);
}

// Of a random graph of 60 nodes, up to five together.
SetProblem RandomSets(unsigned seed) {
  const FusibleSetProblem dag = testing::RandomDag(60, seed);
  return MakeSetProblem(testing::TrafficProblem(dag, EnumerateFusibleSets(dag, {.max_nodes = 5}).sets))
      .value();
}

// The same value from fewer sets, and from an older basis after cuts and sets have come.
TEST(Relaxation, GoesOnFromWhereItIsTold) {
  for (unsigned seed = 400; seed < 420; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const SetProblem sets = RandomSets(seed);
    const std::vector<char> none(sets.sets.size(), 0);
    Relaxation relaxation(sets, 1e5);
    std::set<Cut> cuts;
    ASSERT_TRUE(relaxation.Solve(cuts, none, Soon()));
    const double first = relaxation.seconds();
    const Relaxation::Basis basis = relaxation.LastBasis();
    EXPECT_EQ(basis.entries.size(), 60u);
    for (Cut& cut : SubsetRowCuts(sets, relaxation.shares())) cuts.insert(std::move(cut));
    ASSERT_TRUE(relaxation.Solve(cuts, none, Soon()));
    const double with_cuts = relaxation.seconds();
    EXPECT_GE(with_cuts, first - 1e-12);
    relaxation.GoOnFrom(basis);
    ASSERT_TRUE(relaxation.Solve(cuts, none, Soon()));
    EXPECT_NEAR(relaxation.seconds(), with_cuts, 1e-8 * with_cuts);
    relaxation.Shrink(2);
    ASSERT_TRUE(relaxation.Solve(cuts, none, Soon()));
    EXPECT_NEAR(relaxation.seconds(), with_cuts, 1e-8 * with_cuts);
  }
}

// Cuts without a price leave the program, and come back where they are broken: the value is that of all of
// them.
TEST(Relaxation, HoldsCutsThatAreNotInTheProgram) {
  std::mt19937 random(25);
  size_t fewest = 1000, most = 0;
  for (unsigned seed = 420; seed < 430; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const SetProblem sets = RandomSets(seed);
    std::vector<char> out(sets.sets.size(), 0);
    Relaxation relaxation(sets, 1e5);
    std::set<Cut> cuts;
    for (int round = 0; round < 30; ++round) {
      for (size_t set = 0; set < out.size(); ++set)
        out[set] = sets.sets[set].members.size() > 1 && random() % 4 == 0;
      relaxation.GoOnFrom(relaxation.LastBasis());
      ASSERT_TRUE(relaxation.Solve(cuts, out, Soon()));
      Relaxation fresh(sets, 1e5);
      ASSERT_TRUE(fresh.Solve(cuts, out, Soon()));
      EXPECT_NEAR(relaxation.seconds(), fresh.seconds(), 1e-4 * fresh.seconds());
      for (Cut& cut : SubsetRowCuts(sets, relaxation.shares())) cuts.insert(std::move(cut));
      if (round > 15) fewest = std::min(fewest, relaxation.cuts_in_program());
      most = std::max(most, relaxation.cuts().size());
    }
  }
  EXPECT_LT(fewest, 40u);
  EXPECT_GT(most, 80u);
}

// Every schedulable cover, by brute force, keeps them, also where sets count twice, and they raise the bound.
TEST(ZeroHalfCuts, HoldForEveryCoverAndRaiseTheBound) {
  std::mt19937 random(26);
  int found = 0, counted_twice = 0, higher = 0;
  for (int round = 0; round < 1000; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const CoverProblem problem = RandomProblem(random);
    const SetProblem sets = MakeSetProblem(problem).value();
    const std::vector<Partition> all = AllPartitions(problem, sets);
    const std::vector<char> none(sets.sets.size(), 0);
    Relaxation relaxation(sets, 1e5);
    std::set<Cut> cuts;
    ASSERT_TRUE(relaxation.Solve(cuts, none, Soon()));
    const double first = relaxation.seconds();
    std::vector<int> near(sets.sets.size());
    std::iota(near.begin(), near.end(), 0);
    for (size_t before = 1; before != cuts.size();) {
      before = cuts.size();
      for (const Cut& cut : CliqueCuts(sets, relaxation.shares(), near, Soon())) cuts.insert(cut);
      const std::vector<Cut> halves =
          ZeroHalfCuts(sets, relaxation.cuts(), relaxation.cuts_of(), relaxation.shares(), 2);
      for (const Cut& cut : halves) {
        ++found;
        counted_twice += std::adjacent_find(cut.sets.begin(), cut.sets.end()) != cut.sets.end();
        double taken = 0;
        for (const auto& [set, share] : relaxation.shares())
          taken += share * static_cast<double>(std::count(cut.sets.begin(), cut.sets.end(), set));
        EXPECT_GT(taken, cut.limit);
        for (const Partition& partition : all) {
          auto times = std::count_if(cut.sets.begin(), cut.sets.end(), [&](int set) {
            return std::count(partition.sets.begin(), partition.sets.end(), set) > 0;
          });
          ASSERT_LE(times, cut.limit);
        }
        cuts.insert(cut);
      }
      ASSERT_TRUE(relaxation.Solve(cuts, none, Soon()));
    }
    EXPECT_LE(relaxation.seconds(), all[0].seconds * (1 + 1e-9));
    higher += relaxation.seconds() > first * (1 + 1e-9);
  }
  EXPECT_GT(found, 50);
  EXPECT_GT(counted_twice, 5);
  EXPECT_GT(higher, 20);
}

}  // namespace
}  // namespace fusion
