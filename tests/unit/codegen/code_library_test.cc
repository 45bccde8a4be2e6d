#include "server/codegen/code_library.h"

#include <gtest/gtest.h>

#include "server/codegen/program.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "tests/example_source.h"

namespace fusion {
namespace {

class CodeLibraryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto graph = ParseSource(testing::TextSource("MATRIX4x4 A, B, C; input A, B; C = mmul(A, B); return C;"), *Catalog::BuiltIn());
    ASSERT_TRUE(graph.ok()) << graph.status();
    graph_ = *std::move(graph);
    auto space = SearchFusions(*graph_, sizes_, CostModel(device_), {});
    ASSERT_TRUE(space.ok()) << space.status();
    space_ = *std::move(space);
  }

  const DeviceDescription device_ = DescribedDevice(v1::CUDA);
  const SizeValues sizes_ = {{"elements", 1 << 20}};
  std::shared_ptr<const Graph> graph_;
  SearchSpace space_;
};

TEST_F(CodeLibraryTest, TheSameCodeInAnotherGridIsAnotherUnitWithTheSameBuild) {
  CodeLibrary library(*graph_, device_);
  int pairs = 0;
  for (FusionImplementation one_shot : space_.implementations) {
    if (one_shot.parameters.blocks_per_multiprocessor != 0) continue;
    FusionImplementation persistent = one_shot;
    persistent.parameters.blocks_per_multiprocessor = 1;
    auto first = library.Add(one_shot, false), second = library.Add(persistent, false), again = library.Add(one_shot, false);
    ASSERT_TRUE(first.ok() && second.ok() && again.ok());
    EXPECT_EQ(*first, *again);
    if ((*first)->build.key() != (*second)->build.key()) continue;
    ++pairs;
    EXPECT_NE(*first, *second);
    EXPECT_NE((*first)->key, (*second)->key);
    // Each runs in its own grid.
    const int processors = device_.multiprocessors();
    const int64_t tiles = sizes_.at("elements") / one_shot.parameters.elements_per_block;
    EXPECT_EQ(GridBlocks((*first)->code.launches[0].grid, sizes_, processors), tiles);
    EXPECT_EQ(GridBlocks((*second)->code.launches[0].grid, sizes_, processors), processors);
  }
  EXPECT_GT(pairs, 0);
}

}  // namespace
}  // namespace fusion
