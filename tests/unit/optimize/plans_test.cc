// Which covers compete: the best predicted ones, and others where predictions may be wrong together.
#include "server/optimize/plans.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/skeletons/skeletons.h"
#include "server/target/target.h"
#include "tests/any_parameters.h"
#include "tests/example_source.h"

namespace fusion {
namespace {

Submission Example(const std::string& name, int64_t size) {
  auto checked = CheckSource(testing::ExampleSource(name), *Catalog::BuiltIn());
  EXPECT_TRUE(checked.ok()) << checked.status();
  for (auto& [symbol, value] : checked->sizes) value = size;
  return *std::move(checked);
}

// Structures of the implementations of `nodes` in the covers.
std::set<Structure> StructuresOf(const SearchSpace& space, const std::vector<CoverSolution>& covers,
                                 const NodeSet& nodes) {
  std::set<Structure> found;
  for (const CoverSolution& cover : covers)
    for (int column : cover.columns)
      if (space.implementations[column].fusion.nodes == nodes)
        found.insert(StructureOf(space.implementations[column]));
  return found;
}

constexpr int kCounts[] = {1, 4, 8, 16, 30, 60};

TEST(PlanCovers, EachCoverOnceInOrderAndAtMostAsManyAsAskedFor) {
  const Submission submission = Example("bicgk", 2048);
  const CostModel model(DescribedDevice(v1::CUDA));
  for (int count : kCounts) {
    auto plans = PlanCovers(submission, model, count, false);
    ASSERT_TRUE(plans.ok()) << plans.status();
    const std::vector<CoverSolution>& covers = plans->covers.covers;
    ASSERT_FALSE(covers.empty());
    EXPECT_LE(static_cast<int>(covers.size()), count);
    EXPECT_EQ(plans->summary.covers(), static_cast<int64_t>(covers.size()));
    EXPECT_TRUE(
        std::is_sorted(covers.begin(), covers.end(),
                       [](const CoverSolution& a, const CoverSolution& b) { return a.seconds < b.seconds; }));
    std::set<std::vector<int>> seen;
    for (const CoverSolution& cover : covers) {
      std::vector<int> columns = cover.columns;
      std::sort(columns.begin(), columns.end());
      const std::string text = DescribeCover(*submission.graph, plans->space, cover, 1).description();
      EXPECT_TRUE(seen.insert(columns).second) << "twice: " << text;
      // Exchanging an implementation leaves a cover, predicted as the sum of its members and the first
      // accesses.
      double seconds = 0;
      std::set<int> nodes;
      for (int column : columns) {
        const FusionImplementation& implementation = plans->space.implementations[column];
        seconds += implementation.estimate.total_seconds;
        for (int node : implementation.fusion.nodes.Members()) EXPECT_TRUE(nodes.insert(node).second) << text;
      }
      EXPECT_EQ(static_cast<int>(nodes.size()), submission.graph->node_count()) << text;
      EXPECT_NEAR(cover.seconds, seconds + model.StartSeconds(), 1e-9 * seconds) << text;
    }
  }
}

TEST(PlanCovers, BicgkCompetesInSeveralStructures) {
  const Submission submission = Example("bicgk", 2048);
  auto plans = PlanCovers(submission, CostModel(DescribedDevice(v1::CUDA)), 30, false);
  ASSERT_TRUE(plans.ok()) << plans.status();
  NodeSet both;
  both.Add(0);
  both.Add(1);
  EXPECT_GT(StructuresOf(plans->space, plans->covers.covers, both).size(), 1u);
}

TEST(PlanCovers, StructuresThatAreNotAmongTheBestPredictedCompete) {
  constexpr int kCount = 14;  // the best predicted 30 of BiCGK have all structures
  for (const char* name : {"bicgk", "sgemvt"}) {
    const Submission submission = Example(name, 2048);
    auto plans = PlanCovers(submission, CostModel(DescribedDevice(v1::CUDA)), kCount, false);
    ASSERT_TRUE(plans.ok()) << plans.status();
    CoverProblem problem{.node_count = submission.graph->node_count()};
    for (const Node& node : submission.graph->nodes()) {
      problem.successors.emplace_back();
      for (NodeId successor : submission.graph->successors(node.id))
        problem.successors.back().push_back(successor.value);
    }
    for (const FusionImplementation& implementation : plans->space.implementations)
      problem.columns.push_back({implementation.fusion.nodes, implementation.estimate.total_seconds});
    auto predicted = SolveCovers(problem, {.count = kCount});
    ASSERT_TRUE(predicted.ok()) << predicted.status();

    const NodeSet& fused = plans->space.implementations[predicted->covers[0].columns[0]].fusion.nodes;
    ASSERT_EQ(fused.Size(), 2) << name;
    const std::set<Structure> usual = StructuresOf(plans->space, predicted->covers, fused),
                              competing = StructuresOf(plans->space, plans->covers.covers, fused);
    EXPECT_GT(competing.size(), usual.size()) << name;
    EXPECT_TRUE(std::includes(competing.begin(), competing.end(), usual.begin(), usual.end())) << name;
  }
}

TEST(PlanCovers, OtherFusionsCompete) {
  // The best predicted covers of GEMVER are one kernel in many ways.
  const Submission submission = Example("gemver", 2048);
  auto plans = PlanCovers(submission, CostModel(DescribedDevice(v1::CUDA)), 30, false);
  ASSERT_TRUE(plans.ok()) << plans.status();
  std::set<std::set<std::vector<int>>> partitions;
  for (const CoverSolution& cover : plans->covers.covers) {
    std::set<std::vector<int>> sets;
    for (int column : cover.columns) sets.insert(plans->space.implementations[column].fusion.nodes.Members());
    partitions.insert(std::move(sets));
  }
  EXPECT_GE(partitions.size(), 6u);
  // Those of one group are of the same fusions.
  std::map<int, std::set<size_t>> kernels_of_group;
  for (const WaitingCandidate& candidate : AllCandidates(*plans))
    kernels_of_group[candidate.group].insert(plans->covers.covers[candidate.position].columns.size());
  EXPECT_GE(kernels_of_group.size(), partitions.size());
  for (const auto& [group, sizes] : kernels_of_group) EXPECT_EQ(sizes.size(), 1u) << group;
}

TEST(PlanCovers, TheBestPredictedCoverStaysWhateverIsAdded) {
  for (const char* name : {"gemver", "cg_step", "st_venant_kirchhoff"}) {
    const Submission submission = Example(name, name[0] == 's' ? 31744 : 2048);
    const CostModel model(DescribedDevice(v1::CUDA));
    for (int count : {1, 3, 8, 30}) {
      auto plans = PlanCovers(submission, model, count, false);
      ASSERT_TRUE(plans.ok()) << plans.status();
      const auto best = SolveCoversOf(*submission.graph, plans->space,
                                      [](const FusionImplementation&) { return true; }, {.count = 1});
      ASSERT_TRUE(best.ok()) << best.status();
      EXPECT_NEAR(plans->covers.covers.front().seconds - model.StartSeconds(), best->covers.front().seconds,
                  1e-12)
          << name << count;
      EXPECT_LE(plans->covers.covers.size(), size_t(count));
    }
  }
}

TEST(PlanCovers, DeterministicCoversHaveNoAtomicSums) {
  const Submission submission = Example("axpydot", 1 << 20);
  const CostModel model(DescribedDevice(v1::CUDA));
  for (bool deterministic : {false, true}) {
    auto plans = PlanCovers(submission, model, 30, deterministic);
    ASSERT_TRUE(plans.ok()) << plans.status();
    int atomic = 0;
    for (const CoverSolution& cover : plans->covers.covers)
      for (int column : cover.columns)
        atomic += testing::ParametersOf(plans->space.implementations[column]).atomic;
    EXPECT_EQ(atomic == 0, deterministic);
  }
}

}  // namespace
}  // namespace fusion
