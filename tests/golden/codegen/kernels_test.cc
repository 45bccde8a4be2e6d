// Kernel IR and the text of both printers for one fusion of each skeleton and structure. After a wanted
// change: golden_codegen_test --update-goldens, and read the diff.
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/codegen/kernel_versions.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "server/target/target.h"
#include "tests/any_parameters.h"
#include "tests/example_source.h"
#include "tests/folders.h"
#include "tests/test_main.h"

namespace fusion {
namespace {

struct GoldenCase {
  std::string name;  // of the golden file
  std::string example;
  v1::Target target;
  const Skeleton* skeleton;
  int nodes;  // of the fusion
  bool static_chunks = false;
  bool stages = false;
  bool sub_warp = false;  // the first function by several threads for an element
  // Set: exactly this structure; the fields above but for `nodes` are not looked at.
  std::optional<testing::StructureTraits> structure = std::nullopt;
  int64_t size = 4096;    // of every extent
  double warm_bytes = 0;  // of runs back to back; 0: with cold caches
  // Set: described so, behind the names, whatever is predicted to be fastest; of the above `nodes`, `size`
  // and `target` alone are looked at.
  std::string made = {};
  bool on_host = false;  // what was made for a GPU as the host printer prints it; without the kernel IR
};

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// A structure that only CUDA has.
GoldenCase Special(std::string name, std::string example, int nodes, testing::StructureTraits structure,
                   int64_t size = 4096, double warm_bytes = 0) {
  return {.name = std::move(name),
          .example = std::move(example),
          .target = v1::CUDA,
          .skeleton = structure.skeleton,
          .nodes = nodes,
          .structure = structure,
          .size = size,
          .warm_bytes = warm_bytes};
}

// The kernel that is described by `made`.
GoldenCase Made(std::string name, std::string example, int nodes, std::string made, int64_t size = 4096) {
  return {.name = std::move(name),
          .example = std::move(example),
          .target = v1::CUDA,
          .skeleton = &RowPanelSkeleton(),
          .nodes = nodes,
          .size = size,
          .made = std::move(made)};
}

// The kernel of a structure that only CUDA has, by the other printer.
GoldenCase OnHost(GoldenCase test) {
  test.on_host = true;
  return test;
}

class KernelGolden : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(KernelGolden, TextIsUnchanged) {
  const GoldenCase& test = GetParam();
  auto graph = ParseSource(testing::ExampleSource(test.example), *Catalog::BuiltIn());
  ASSERT_TRUE(graph.ok()) << graph.status();
  SizeValues sizes;
  for (const Size& size : (*graph)->sizes()) sizes[size.name] = test.size;
  SearchOptions options;
  options.implementation.keep = 60;
  const CostModel model(DescribedDevice(test.target), test.warm_bytes);
  auto space = SearchFusions(**graph, sizes, model, options);
  ASSERT_TRUE(space.ok()) << space.status();
  const FusionImplementation* chosen = nullptr;
  for (const FusionImplementation& implementation : space->implementations) {
    const testing::AnyParameters p = testing::ParametersOf(implementation);
    const bool sub_warp = !p.choices.empty() && p.choices.front() > 0;
    if (chosen != nullptr || implementation.fusion.nodes.Size() != test.nodes) continue;
    if (!test.made.empty() ? absl::EndsWith(Describe(**graph, implementation), "} " + test.made)
        : test.structure   ? testing::TraitsOf(implementation) == *test.structure
                         : implementation.skeleton == test.skeleton && (p.chunks > 0) == test.static_chunks &&
                               (p.stages > 0) == test.stages && sub_warp == test.sub_warp)
      chosen = &implementation;
  }
  ASSERT_NE(chosen, nullptr);
  const bool cuda = test.target == v1::CUDA;
  auto code = LowerFusion(**graph, *chosen, {.simt = cuda});
  ASSERT_TRUE(code.ok()) << code.status();
  std::string text = absl::StrCat("// ", Describe(**graph, *chosen), "\n\n");
  for (const KernelLaunch& launch : code->launches)
    if (!test.on_host) absl::StrAppend(&text, "/*\n", ir::ToString(launch.kernel), "*/\n");
  const bool in_cuda = cuda && !test.on_host;
  for (const KernelLaunch& launch : code->launches)
    for (const ir::Kernel& kernel : LaunchableKernels(launch))
      absl::StrAppend(&text, "\n", TargetOf(in_cuda ? v1::CUDA : v1::HOST).Print(kernel));

  const std::string path = absl::StrCat(testing::SourceFolder() + "/tests/golden/codegen/", test.name,
                                        in_cuda ? ".cu.golden" : ".cc.golden");
  if (testing::g_update_goldens) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  EXPECT_EQ(text, ReadFile(path)) << "run golden_codegen_test --update-goldens and read the diff";
}

INSTANTIATE_TEST_SUITE_P(
    All, KernelGolden,
    ::testing::Values(
        GoldenCase{"axpydot", "axpydot", v1::HOST, &VectorSkeleton(), 2},
        GoldenCase{"axpydot", "axpydot", v1::CUDA, &VectorSkeleton(), 2},
        GoldenCase{"madd", "madd", v1::CUDA, &VectorSkeleton(), 1},
        GoldenCase{"function1", "function1", v1::HOST, &ElementSkeleton(), 6},
        GoldenCase{"function1", "function1", v1::CUDA, &ElementSkeleton(), 6},
        GoldenCase{"function1_sub_warp", "function1", v1::CUDA, &ElementSkeleton(), 6, false, false, true},
        GoldenCase{"atax", "atax", v1::HOST, &RowPanelSkeleton(), 2},
        GoldenCase{"atax_stages", "atax", v1::CUDA, &RowPanelSkeleton(), 2, true, true},
        GoldenCase{"bicgk_stages", "bicgk", v1::CUDA, &RowPanelSkeleton(), 2, true, true},
        GoldenCase{"softmax", "softmax", v1::HOST, &RowPanelSkeleton(), 5},
        GoldenCase{"gemver", "gemver", v1::CUDA, &RowPanelSkeleton(), 3, true, true},
        Special("joint_poses_exchanged", "joint_poses", 2,
                {.skeleton = &ElementSkeleton(), .load_path = LoadPath::kExchanged, .one_shot = true}),
        Special("joint_poses_in_place", "joint_poses", 1,
                {.skeleton = &ElementSkeleton(), .one_shot = true, .several_threads = 4}),
        Special("bicgk_bulk", "bicgk", 2, {.skeleton = &RowPanelSkeleton(), .load_path = LoadPath::kBulk}),
        Special("layer_norm_one_shot", "layer_norm", 9,
                {.skeleton = &RowPanelSkeleton(), .one_shot = true, .in_groups = true}),
        Special("atax_cluster", "atax", 2,
                {.skeleton = &RowPanelSkeleton(), .load_path = LoadPath::kBulk, .in_clusters = true}, 16384),
        Special("softmax_cluster_8", "softmax", 5,
                {.skeleton = &RowPanelSkeleton(), .one_shot = true, .in_clusters = true}, 262144),
        Special("softmax_ragged", "softmax", 5, {.skeleton = &RowPanelSkeleton()}, 5001),
        Made("bicgk_ragged_stages", "bicgk", 2, "row_panel T256 C20 S4 staged holds B2", 5001),
        Made("gemver_tiles", "gemver", 3, "row_panel T128 V4 C1 M4 tiles of 128 rows holds one-shot"),
        Special("cg_step_one_block", "cg_step", 8, {.skeleton = &BlockVectorSkeleton()}),
        Special("gemver_l2", "gemver", 3,
                {.skeleton = &RowPanelSkeleton(),
                 .one_shot = true,
                 .in_batches = true,
                 .in_tiles = true,
                 .in_l2 = true},
                2560, 1e9),
        Special("madd_l2", "madd", 1, {.skeleton = &VectorSkeleton(), .one_shot = true, .in_l2 = true}, 2048,
                1e9),
        Special("axpydot_atomic", "axpydot", 3, {.skeleton = &CooperativeSkeleton(), .atomic = true}),
        Special("bicgk_atomic", "bicgk", 2,
                {.skeleton = &CooperativeSkeleton(), .load_path = LoadPath::kStaged, .atomic = true}),
        Special("sgemvt_kept", "sgemvt", 2,
                {.skeleton = &CooperativeSkeleton(), .load_path = LoadPath::kStaged, .keeps_rows = true}),
        Special("sgemvt_kept_registers", "sgemvt", 2,
                {.skeleton = &CooperativeSkeleton(), .in_batches = true, .keeps_rows = true}),
        Special("sgemvt_kept_both", "sgemvt", 2,
                {.skeleton = &CooperativeSkeleton(),
                 .in_batches = true,
                 .keeps_rows = true,
                 .in_both = true,
                 .atomic = true}),
        Special("sgemvt_kept_atomic", "sgemvt", 2,
                {.skeleton = &CooperativeSkeleton(), .in_batches = true, .keeps_rows = true, .atomic = true}),
        // Structures that are never chosen for a host; tests run them there (tests/property/codegen).
        OnHost(GoldenCase{"function1_sub_warp", "function1", v1::CUDA, &ElementSkeleton(), 6, false, false,
                          true}),
        OnHost(
            Special("joint_poses_exchanged", "joint_poses", 2,
                    {.skeleton = &ElementSkeleton(), .load_path = LoadPath::kExchanged, .one_shot = true})),
        OnHost(Special("joint_poses_in_place", "joint_poses", 1,
                       {.skeleton = &ElementSkeleton(), .one_shot = true, .several_threads = 4})),
        OnHost(GoldenCase{"bicgk_stages", "bicgk", v1::CUDA, &RowPanelSkeleton(), 2, true, true}),
        OnHost(Special("layer_norm_one_shot", "layer_norm", 9,
                       {.skeleton = &RowPanelSkeleton(), .one_shot = true, .in_groups = true})),
        OnHost(Made("gemver_tiles", "gemver", 3, "row_panel T128 V4 C1 M4 tiles of 128 rows holds one-shot")),
        OnHost(Special("cg_step_one_block", "cg_step", 8, {.skeleton = &BlockVectorSkeleton()})),
        OnHost(Special("axpydot_atomic", "axpydot", 3, {.skeleton = &CooperativeSkeleton(), .atomic = true})),
        OnHost(Special(
            "sgemvt_kept", "sgemvt", 2,
            {.skeleton = &CooperativeSkeleton(), .load_path = LoadPath::kStaged, .keeps_rows = true}))),
    [](const auto& info) {
      return absl::StrCat(info.param.name, info.param.target == v1::CUDA ? "_cuda" : "_host",
                          info.param.on_host ? "_on_host" : "");
    });

}  // namespace
}  // namespace fusion
