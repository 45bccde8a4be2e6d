#include "server/codegen/code_library.h"

#include <gtest/gtest.h>

#include "server/codegen/program.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "tests/any_parameters.h"
#include "tests/example_source.h"

namespace fusion {
namespace {

class CodeLibraryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto graph = ParseSource(testing::TextSource("MATRIX4x4 A, B, C; input A, B; C = mmul(A, B); return C;"),
                             *Catalog::BuiltIn());
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
  CodeLibrary library(*graph_, sizes_, device_);
  int pairs = 0;
  for (FusionImplementation one_shot : space_.implementations) {
    if (one_shot.As<ElementParameters>().blocks_per_multiprocessor != 0) continue;
    FusionImplementation persistent = one_shot;
    persistent.As<ElementParameters>().blocks_per_multiprocessor = 1;
    auto first = library.Add(one_shot, false), second = library.Add(persistent, false),
         again = library.Add(one_shot, false);
    ASSERT_TRUE(first.ok() && second.ok() && again.ok());
    EXPECT_EQ(*first, *again);
    if ((*first)->build.key() != (*second)->build.key()) continue;
    ++pairs;
    EXPECT_NE(*first, *second);
    EXPECT_NE((*first)->key, (*second)->key);
    // Each runs in its own grid.
    const int processors = device_.multiprocessors();
    const int64_t tiles = sizes_.at("elements") / one_shot.As<ElementParameters>().elements_per_block;
    EXPECT_EQ(GridBlocks((*first)->code.launches[0].grid, sizes_, processors), tiles);
    EXPECT_EQ(GridBlocks((*second)->code.launches[0].grid, sizes_, processors), processors);
  }
  EXPECT_GT(pairs, 0);
}

v1::BuildTask Task(const std::string& source) {
  v1::BuildTask task;
  task.set_target(v1::CUDA);
  task.set_arch("sm_90");
  task.set_source(source);
  return task;
}

TEST(NamelessBuildKey, IsOfEverythingButNames) {
  const auto key = [](const std::string& source) { return NamelessBuildKey(Task(source), "NVRTC 13.0"); };
  const std::string plain =
      key("// y = scal(a, x)\nfloat fused_y(float s_a, float r_x) { return s_a * r_x + 1e-8f; }");
  EXPECT_EQ(plain,
            key("// m = scal(c, v)\nfloat fused_m(float s_c, float r_v) { return s_c * r_v + 1e-8f; }"));
  for (const char* other :
       {"// y = scal(a, x)\nfloat fused_y(float s_a, float r_x) { return r_x * s_a + 1e-8f; }",
        "// y = scal(a, x)\nfloat fused_y(float s_a, float r_x) { return s_a * r_x + 1e-7f; }",
        "// y = scal(a, x)\nfloat fused_y(float s_a, double r_x) { return s_a * r_x + 1e-8f; }",
        "// y = scal(a, x)\nfloat fused_y(float s_a, float r_x) { return s_a + r_x + 1e-8f; }"})
    EXPECT_NE(plain, key(other)) << other;
  EXPECT_NE(plain,
            NamelessBuildKey(
                Task("// y = scal(a, x)\nfloat fused_y(float s_a, float r_x) { return s_a * r_x + 1e-8f; }"),
                "NVRTC 12.8"));
}

// The kernel of one graph under the names of another.
TEST(NamelessBuildKey, IsThatOfTheKernelInAnotherGraph) {
  const DeviceDescription device = DescribedDevice(v1::CUDA);
  std::vector<std::string> keys, nameless;
  for (const char* text : {"size n = 8; vector[n] x, y; scalar a; input a, x; y = scal(a, x); return y;",
                           "size k = 8; vector[k] long_name, u; scalar s; input s, long_name; u = scal(s, "
                           "long_name); return u;"}) {
    auto graph = ParseSource(testing::TextSource(text), *Catalog::BuiltIn());
    ASSERT_TRUE(graph.ok()) << graph.status();
    const SizeValues sizes = {{(*graph)->sizes()[0].name, 1 << 20}};
    auto space = SearchFusions(**graph, sizes, CostModel(device), {});
    ASSERT_TRUE(space.ok()) << space.status();
    CodeLibrary library(**graph, sizes, device);
    auto unit = library.Add(space->implementations[space->unfused[0]], false);
    ASSERT_TRUE(unit.ok()) << unit.status();
    keys.push_back((*unit)->build.key());
    nameless.push_back(NamelessBuildKey((*unit)->build, device.toolkit_version()));
  }
  EXPECT_NE(keys[0], keys[1]);
  EXPECT_EQ(nameless[0], nameless[1]);
}

}  // namespace
}  // namespace fusion
