#include "server/search/implementation_choice.h"

#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "tests/example_source.h"

namespace fusion {
namespace {

// The search of an example at sizes of 2048 for the described H100, with room for most implementations.
struct ExampleSearch {
  std::shared_ptr<const Graph> graph;
  SearchSpace space;
};
ExampleSearch Search(const std::string& example, bool deterministic) {
  auto graph = ParseSource(testing::ExampleSource(example), *Catalog::BuiltIn());
  EXPECT_TRUE(graph.ok()) << graph.status();
  SizeValues sizes;
  for (const Size& size : (*graph)->sizes()) sizes[size.name] = 2048;
  SearchOptions options;
  options.implementation.keep = 60;
  options.implementation.deterministic = deterministic;
  auto space = SearchFusions(**graph, sizes, CostModel(DescribedDevice(v1::CUDA)), options);
  EXPECT_TRUE(space.ok()) << space.status();
  return {*graph, *std::move(space)};
}

bool HasAtomicSums(const FusionImplementation& implementation) {
  bool atomic = implementation.parameters.atomic;
  for (const FusionImplementation& sweep : implementation.sweeps) atomic |= HasAtomicSums(sweep);
  return atomic;
}

// Softmax of f64 rows: 2.4 times as long as predicted with a warp a row and everything in its registers, 1.0
// times with a block a row (H200). What was measured of one says little of the other.
TEST(StructureOf, SetsRowsByAPartOfABlockApart) {
  const ExampleSearch search = Search("softmax", false);
  std::set<Structure> by_blocks, by_groups;
  for (const FusionImplementation& implementation : search.space.implementations) {
    if (implementation.skeleton != Skeleton::kRowPanel || implementation.parameters.cluster_blocks > 1)
      continue;
    const bool groups = implementation.parameters.threads_per_row < implementation.parameters.threads;
    (groups ? by_groups : by_blocks).insert(StructureOf(implementation));
  }
  EXPECT_FALSE(by_blocks.empty());
  EXPECT_FALSE(by_groups.empty());
  for (const Structure& structure : by_groups) EXPECT_FALSE(by_blocks.contains(structure));
}

class AtomicSumsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(AtomicSumsTest, AreAmongTheImplementationsOfCooperativeFusionsAlone) {
  const ExampleSearch search = Search(GetParam(), false);
  int atomic = 0;
  for (const FusionImplementation& implementation : search.space.implementations) {
    if (!HasAtomicSums(implementation)) continue;
    ++atomic;
    // Blocks must wait for the zeros, which takes a cooperative launch; and all sweeps agree.
    EXPECT_EQ(implementation.skeleton, Skeleton::kCooperative) << implementation.Describe(*search.graph);
    EXPECT_TRUE(implementation.parameters.atomic) << implementation.Describe(*search.graph);
    EXPECT_TRUE(StructureOf(implementation).atomic);
    ASSERT_FALSE(implementation.sweeps.empty());
    for (const FusionImplementation& sweep : implementation.sweeps) EXPECT_TRUE(sweep.parameters.atomic);
  }
  EXPECT_GT(atomic, 0);
}

TEST_P(AtomicSumsTest, AreLeftOutWhereResultsMustBeDeterministic) {
  const ExampleSearch search = Search(GetParam(), true);
  int cooperative = 0;
  for (const FusionImplementation& implementation : search.space.implementations) {
    EXPECT_FALSE(HasAtomicSums(implementation)) << implementation.Describe(*search.graph);
    cooperative += implementation.skeleton == Skeleton::kCooperative;
  }
  // With partial results they are still there.
  EXPECT_GT(cooperative, 0);
}

INSTANTIATE_TEST_SUITE_P(Examples, AtomicSumsTest, ::testing::Values("axpydot", "bicgk", "cg_step"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace fusion
