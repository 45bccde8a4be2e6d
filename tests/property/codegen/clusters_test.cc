// Rows that the blocks of a cluster hold together: the same results as the reference, at widths that fill all
// blocks, only some of them, or end within one.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "server/target/target.h"
#include "tests/any_parameters.h"
#include "tests/example_source.h"
#include "tests/property/codegen/host_execution.h"

namespace fusion::testing {
namespace {

struct ClusterCase {
  std::string example;
  bool grid_results;  // gathered over the rows
};
class ClustersTest : public ::testing::TestWithParam<ClusterCase> {};

TEST_P(ClustersTest, AgreeWithTheReference) {
  auto parsed = ParseSource(ExampleSource(GetParam().example), *Catalog::BuiltIn());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Graph& graph = **parsed;
  const SizeValues generated = {{"m", 4096}, {"n", 16384}};
  SearchOptions options;
  options.implementation.keep = 1000;
  auto space = SearchFusions(graph, generated, CostModel(DescribedDevice(v1::CUDA)), options);
  ASSERT_TRUE(space.ok()) << space.status();
  std::vector<FusionCode> codes;
  std::vector<std::string> descriptions;
  std::set<std::tuple<LoadPath, bool, bool, bool, bool>> kinds;
  std::set<LoadPath> paths;
  std::set<bool> one_shot;
  for (const FusionImplementation& implementation : space->implementations) {
    const AnyParameters p = ParametersOf(implementation);
    if (implementation.fusion.nodes.Size() != graph.node_count() || p.cluster_blocks == 1) continue;
    if (!kinds
             .emplace(p.load_path, p.blocks_per_multiprocessor == 0, p.hold_columns, p.vector_width > 1,
                      p.rows_per_step > 1)
             .second)
      continue;
    paths.insert(p.load_path);
    one_shot.insert(p.blocks_per_multiprocessor == 0);
    auto code = LowerFusion(graph, implementation, {.simt = true});
    ASSERT_TRUE(code.ok()) << code.status() << Describe(graph, implementation);
    EXPECT_EQ(code->launches.front().kernel.cluster_blocks, 2);
    EXPECT_EQ(GridBlocks(code->launches.front().grid, {{"m", 3}, {"n", 16384}}, 132), 6)
        << Describe(graph, implementation);
    codes.push_back(*std::move(code));
    descriptions.push_back(Describe(graph, implementation));
  }
  EXPECT_EQ(paths.size(), 3u);
  EXPECT_EQ(one_shot.size(), GetParam().grid_results ? 1u : 2u);
  const auto compared = ComparedCodes::Compile(graph, generated, codes);
  ASSERT_TRUE(compared.ok()) << compared.status();

  for (const auto& [rows, columns] : std::vector<std::pair<int64_t, int64_t>>{
           {21, 16384}, {5, 9001}, {9, 16380}, {3, 33}, {1, 1}, {0, 40}}) {
    const SizeValues sizes = {{"m", rows}, {"n", columns}};
    Values inputs;
    RandomInputs(graph, sizes, 7, &inputs);
    Values expected = inputs;
    auto status = (*compared)->RunReference(sizes, graph.outputs(), &expected);
    ASSERT_TRUE(status.ok()) << status;
    for (size_t c = 0; c < codes.size(); ++c) {
      Values values = inputs;
      // Three multiprocessors: an odd number, of which clusters of two leave one.
      auto run = RunOnHost(graph, sizes, (*compared)->module(), {&codes[c]}, 3, false, graph.inputs(),
                           graph.outputs(), &values);
      ASSERT_TRUE(run.ok()) << run << descriptions[c];
      for (ValueId id : graph.outputs())
        EXPECT_LE(RelativeError(values[id.value], expected[id.value]), 2e-4)
            << graph.value(id).name << " at " << rows << " x " << columns << ": " << descriptions[c];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ClustersTest,
                         ::testing::Values(ClusterCase{"atax", true}, ClusterCase{"bicgk", true},
                                           ClusterCase{"softmax", false}, ClusterCase{"layer_norm", false}),
                         [](const auto& info) { return info.param.example; });

// Rows that two blocks cannot hold, by four or eight: what a person exports for sizes that these fill, runs
// for shorter rows too.
struct WideCase {
  std::string example;
  int64_t columns;
  int blocks;  // the fewest that hold them
};
class LargeClustersTest : public ::testing::TestWithParam<WideCase> {};

TEST_P(LargeClustersTest, HoldRowsThatFewerBlocksCannotAndAgreeWithTheReference) {
  const auto& [example, columns, blocks] = GetParam();
  auto parsed = ParseSource(ExampleSource(example), *Catalog::BuiltIn());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Graph& graph = **parsed;
  const SizeValues generated = {{"m", 4096}, {"n", columns}};
  SearchOptions options;
  options.implementation.keep = 1000;
  auto space = SearchFusions(graph, generated, CostModel(DescribedDevice(v1::CUDA)), options);
  ASSERT_TRUE(space.ok()) << space.status();
  std::vector<FusionCode> codes;
  std::vector<std::string> descriptions;
  std::set<std::tuple<LoadPath, bool, bool, bool>> kinds;
  for (const FusionImplementation& implementation : space->implementations) {
    const AnyParameters p = ParametersOf(implementation);
    if (implementation.fusion.nodes.Size() != graph.node_count() || p.cluster_blocks == 1) continue;
    EXPECT_EQ(p.cluster_blocks, blocks) << Describe(graph, implementation);
    if (!kinds.emplace(p.load_path, p.blocks_per_multiprocessor == 0, p.hold_columns, p.rows_per_step > 1)
             .second)
      continue;
    auto code = LowerFusion(graph, implementation, {.simt = true});
    ASSERT_TRUE(code.ok()) << code.status() << Describe(graph, implementation);
    const KernelLaunch& launch = code->launches.front();
    EXPECT_EQ(launch.kernel.cluster_blocks, blocks);
    EXPECT_EQ(GridBlocks(launch.grid, {{"m", 3}, {"n", columns}}, 132), 3 * blocks);
    // All at once where the grid is persistent: 120 blocks of such clusters fit on an H100.
    if (p.blocks_per_multiprocessor == 1) {
      EXPECT_EQ(GridBlocks(launch.grid, generated, 132), 112) << Describe(graph, implementation);
    }
    codes.push_back(*std::move(code));
    descriptions.push_back(Describe(graph, implementation));
  }
  EXPECT_GE(codes.size(), 2u);
  const auto compared = ComparedCodes::Compile(graph, generated, codes);
  ASSERT_TRUE(compared.ok()) << compared.status();

  for (const auto& [rows, width] :
       std::vector<std::pair<int64_t, int64_t>>{{5, columns}, {3, columns - 4093}, {2, 8191}, {1, 1}}) {
    const SizeValues sizes = {{"m", rows}, {"n", width}};
    Values inputs;
    RandomInputs(graph, sizes, 7, &inputs);
    Values expected = inputs;
    auto status = (*compared)->RunReference(sizes, graph.outputs(), &expected);
    ASSERT_TRUE(status.ok()) << status;
    for (size_t c = 0; c < codes.size(); ++c) {
      Values values = inputs;
      // So few multiprocessors that a cluster has several rows.
      auto run = RunOnHost(graph, sizes, (*compared)->module(), {&codes[c]}, 17, false, graph.inputs(),
                           graph.outputs(), &values);
      ASSERT_TRUE(run.ok()) << run << descriptions[c];
      for (ValueId id : graph.outputs())
        EXPECT_LE(RelativeError(values[id.value], expected[id.value]), 2e-4)
            << graph.value(id).name << " at " << rows << " x " << width << ": " << descriptions[c];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LargeClustersTest,
                         ::testing::Values(WideCase{"atax", 98304, 4}, WideCase{"atax", 196608, 8},
                                           WideCase{"softmax", 131072, 4}, WideCase{"softmax", 262144, 8}),
                         [](const auto& info) {
                           return absl::StrCat(info.param.example, "_by_", info.param.blocks);
                         });

TEST(Clusters, OnlyWhereTheDeviceHasThemAndRowsAreLong) {
  auto graph = ParseSource(ExampleSource("atax"), *Catalog::BuiltIn());
  ASSERT_TRUE(graph.ok()) << graph.status();
  SearchOptions options;
  options.implementation.keep = 1000;
  const auto clusters = [&](const DeviceDescription& device, int64_t columns) {
    int count = 0;
    auto space = SearchFusions(**graph, {{"m", 4096}, {"n", columns}}, CostModel(device), options);
    EXPECT_TRUE(space.ok()) << space.status();
    for (const FusionImplementation& implementation : space->implementations)
      count += ParametersOf(implementation).cluster_blocks > 1;
    return count;
  };
  EXPECT_GT(clusters(DescribedDevice(v1::CUDA, "sm_90"), 16384), 0);
  EXPECT_EQ(clusters(DescribedDevice(v1::CUDA, "sm_90"), 4096), 0);
  EXPECT_EQ(clusters(DescribedDevice(v1::CUDA, "sm_89"), 16384), 0);
  EXPECT_EQ(clusters(DescribedDevice(v1::CUDA, "sm_89"), 98304), 0);
  EXPECT_GT(clusters(DescribedDevice(v1::CUDA, "sm_90"), 98304), 0);
}

}  // namespace
}  // namespace fusion::testing
