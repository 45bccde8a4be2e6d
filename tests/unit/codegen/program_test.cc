#include "server/codegen/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/codegen/device_runtime.h"
#include "server/codegen/exported_folder.h"
#include "server/codegen/verification.h"
#include "server/parse/parse.h"
#include "server/search/implementation_choice.h"
#include "server/skeletons/skeletons.h"
#include "server/target/printer.h"
#include "server/target/target.h"

namespace fusion {
namespace {

std::shared_ptr<const Graph> Parse(const std::string& text) {
  v1::GraphSource source;
  source.set_fuse(text);
  source.set_file_name("test.fuse");
  auto graph = ParseSource(source, *Catalog::BuiltIn());
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *graph;
}

// A whole number has no sign where it is 0.
TEST(Literals, KeepTheirSignInGeneratedCode) {
  const auto graph = Parse(
      "size n; vector[n] x, a, b, c; input x; a = scale(-0.0, x); b = shift(2, a); c = scale(1e-30, b); "
      "return "
      "c;");
  const CostModel model(DescribedDevice(v1::HOST));
  std::string text;
  for (const Node& node : graph->nodes()) {
    auto code = LowerFusion(*graph, ReferenceImplementation(*graph, node.id, {{"n", 1000}}, model), {});
    ASSERT_TRUE(code.ok()) << code.status();
    text += TargetOf(v1::HOST).Print(code->launches[0].kernel);
  }
  for (const char* literal : {"float(-0.0)", "float(2.0)", "float(1.0000000000000001e-30)"})
    EXPECT_NE(text.find(literal), std::string::npos) << literal << "\n" << text;
}

TEST(GridBlocks, ClampedToOneAndToTheDevice) {
  const GridRule rule{
      .extents = {Extent{.name = "n"}}, .items_per_block = 100, .blocks_per_multiprocessor = 2};
  EXPECT_EQ(GridBlocks(rule, {{"n", 0}}, 4), 1);
  EXPECT_EQ(GridBlocks(rule, {{"n", 101}}, 4), 2);
  EXPECT_EQ(GridBlocks(rule, {{"n", 1000000}}, 4), 8);
  EXPECT_EQ(GridBlocks(GridRule(), {}, 4), 1);
}

TEST(GridBlocks, EachPartHasBlocksOfItsOwnInOneGroup) {
  const GridRule rule{.extents = {Extent{.name = "m"}},
                      .items_per_block = 128,
                      .blocks_per_multiprocessor = 0,
                      .part_entries = 2048,
                      .parts = Extent{.name = "n"}};
  for (const auto& [m, n, groups, parts] :
       {std::array{16384, 16384, 128, 8}, {129, 2049, 2, 2}, {1, 1, 1, 1}, {0, 5000, 1, 3}, {500, 0, 4, 1}}) {
    EXPECT_EQ(GridGroups(rule, {{"m", m}, {"n", n}}, 132), groups) << m << " x " << n;
    EXPECT_EQ(GridBlocks(rule, {{"m", m}, {"n", n}}, 132), groups * parts) << m << " x " << n;
  }
}

TEST(Printer, LaneVariablesAreIndexedOnTheHostOnly) {
  EXPECT_EQ(SubstituteLaneVariables("$acc_y[c][v] += $x;", "[lane]"), "acc_y[lane][c][v] += x[lane];");
  EXPECT_EQ(SubstituteLaneVariables("$acc_y[c] += x;", ""), "acc_y[c] += x;");
}

TEST(Lowering, LoopsOverWhatNoRegistersHoldAreNotUnrolled) {
  const CostModel model(DescribedDevice(v1::CUDA));
  const auto loops = [&](int side, const std::string& pragma) {
    auto graph =
        Parse(absl::StrCat("MATRIX", side, "x", side, " A, B, C; input A, B; C = mmul(A, B); return C;"));
    const FusionImplementation implementation =
        ReferenceImplementation(*graph, NodeId{0}, {{"elements", 1000}}, model);
    auto reference = LowerFusion(*graph, implementation, {.force_f64 = true, .simt = true});
    EXPECT_TRUE(reference.ok()) << reference.status();
    const std::string source = PrintSource(*reference, TargetOf(v1::CUDA), false);
    return std::vector<std::string>(absl::StrSplit(source.substr(source.find("__global__")), pragma)).size() -
           1;
  };
  EXPECT_EQ(loops(4, "FUSION_UNROLL"), 3) << "two operands and the result";
  EXPECT_EQ(loops(4, "FUSION_NO_UNROLL"), 1) << "over elements: a reference shall be built fast";
  EXPECT_EQ(loops(16, "FUSION_UNROLL"), 0);
  EXPECT_EQ(loops(16, "FUSION_NO_UNROLL"), 3 + 1);
}

TEST(Program, ResolvesBuffersScalarsSizesAndTemporaries) {
  auto graph = Parse(
      "size n; vector[n] w, v, u, z; scalar a, r; input w, v, u, a;"
      "z = axpy(a, v, w); r = dot(z, u); return r;");
  const SizeValues sizes = {{"n", 1000}};
  const CostModel model(DescribedDevice(v1::HOST));
  std::vector<FusionCode> codes;
  for (const Node& node : graph->nodes()) {
    auto code = LowerFusion(*graph, ReferenceImplementation(*graph, node.id, sizes, model), {.simt = false});
    ASSERT_TRUE(code.ok()) << code.status();
    codes.push_back(*std::move(code));
  }
  const v1::Program program =
      BuildProgram(*graph, sizes, {{&codes[0], "x"}, {&codes[1], "y"}}, {.name = "p", .multiprocessors = 2});
  ASSERT_EQ(program.temporaries_size(), 1);
  EXPECT_EQ(program.temporaries(0).name(), "z");
  EXPECT_EQ(program.temporaries(0).count(), 1000);
  ASSERT_EQ(program.launches_size(), 3) << "axpy, dot and its finish kernel";
  EXPECT_GT(program.workspace_bytes(), 0);
  int scalars = 0;
  for (const v1::LaunchArgument& argument : program.launches(0).arguments())
    scalars += argument.kind_case() == v1::LaunchArgument::kScalarBuffer;
  EXPECT_EQ(scalars, 1);
}

TEST(Program, InputsOfLogarithmsAndDivisorsArePositive) {
  auto graph = Parse(
      "size n; vector[n] x, y, d, l, s; input x, y; d = vdiv(x, y); l = log(d); s = vadd(l, x); return s;");
  v1::Session session;
  DescribeBuffers(*graph, {{"n", 8}}, &session);
  ASSERT_EQ(session.inputs_size(), 2);
  EXPECT_EQ(session.inputs(0).domain(), v1::POSITIVE);
  EXPECT_EQ(session.inputs(1).domain(), v1::POSITIVE);
  auto plain = Parse("size n; vector[n] x, y; input x; y = neg(x); return y;");
  v1::Session other;
  DescribeBuffers(*plain, {{"n", 8}}, &other);
  EXPECT_EQ(other.inputs(0).domain(), v1::REAL);
}

TEST(Program, BuffersHaveTheirRowsAndInputsTheValuesThatAreAskedFor) {
  auto graph = Parse(
      "size m, n, k; matrix[m,n,ld=k] A; vector[n] x; vector[m] y; scalar a; MATRIX2x3 R, S; SCALAR s, t;"
      "input A in (0, 1), x = sorted, a, R = unit_rows, s; y = gemv(a, A, x); S = neg(R); t = neg(s);"
      "return y, S, t;");
  v1::Session session;
  DescribeBuffers(*graph, {{"m", 4}, {"n", 5}, {"k", 8}, {"elements", 7}}, &session);
  const auto shape = [](const v1::Buffer& buffer) {
    return std::vector<int64_t>{buffer.count(), buffer.rows(), buffer.columns(), buffer.row_stride()};
  };
  ASSERT_EQ(session.inputs_size(), 5);
  EXPECT_EQ(shape(session.inputs(0)), (std::vector<int64_t>{32, 4, 5, 8}));
  EXPECT_EQ(shape(session.inputs(1)), (std::vector<int64_t>{5, 0, 5, 0}));
  EXPECT_EQ(shape(session.inputs(2)), (std::vector<int64_t>{1, 0, 0, 0}));
  EXPECT_EQ(shape(session.inputs(3)), (std::vector<int64_t>{42, 2, 3, 3}));
  EXPECT_EQ(shape(session.inputs(4)), (std::vector<int64_t>{7, 0, 0, 0}));
  EXPECT_EQ(session.inputs(0).values().ShortDebugString(), "kind: UNIFORM upper: 1");
  EXPECT_EQ(session.inputs(1).values().ShortDebugString(), "kind: SORTED lower: -1 upper: 1");
  EXPECT_EQ(session.inputs(2).values().kind(), v1::InputValues::DEFAULT);
  EXPECT_EQ(session.inputs(3).values().kind(), v1::InputValues::UNIT_ROWS);
  EXPECT_EQ(shape(session.outputs(0)), (std::vector<int64_t>{4, 0, 4, 0}));
  EXPECT_EQ(shape(session.outputs(1)), (std::vector<int64_t>{42, 2, 3, 3}));
}

TEST(Verification, ExponentsOfLongSumsStayModerate) {
  auto graph = Parse(
      "size m, n; matrix[m,n] X; vector[n] w; vector[m] e, p; input X, w; e = gemv(1.0, X, w); p = exp(e); "
      "return p;");
  v1::Session session;
  DescribeBuffers(*graph, {{"m", 8}, {"n", 10000}}, &session);
  for (const v1::Buffer& input : session.inputs()) {
    EXPECT_NEAR(input.values().upper(), 0.1, 1e-6) << "the fourth root of 1 / n";
    EXPECT_EQ(input.values().lower(), -input.values().upper());
  }
  auto plain = Parse("size n; vector[n] x, y; input x; y = exp(x); return y;");
  v1::Session other;
  DescribeBuffers(*plain, {{"n", 8}}, &other);
  EXPECT_FALSE(other.inputs(0).values().upper() > 0) << "the default is moderate enough";
}

TEST(Verification, ConditionsAmongTheInputsAreZerosAndOnes) {
  auto graph = Parse(
      "size n; vector[n] c, x, y, z, l, w; input c, x, y; z = where(c, x, y); l = lt(x, y);"
      "w = where(l, x, z); return w;");
  ASSERT_NE(graph, nullptr);
  v1::Session session;
  DescribeBuffers(*graph, {{"n", 8}}, &session);
  EXPECT_EQ(session.inputs(0).values().ShortDebugString(), "kind: INTEGERS upper: 1");
  for (int other : {1, 2})
    EXPECT_EQ(session.inputs(other).values().kind(), v1::InputValues::DEFAULT) << "compared, not a condition";
  EXPECT_EQ(OutputTolerances(*graph, {{"n", 8}})[0], 0) << "chosen among inputs";
}

TEST(Verification, WhatIsInvertedIsMadeOfPositiveDefiniteMatrices) {
  auto graph = Parse(
      "MATRIX2x4 H, HP; MATRIX4x4 P; MATRIX2x2 R, S, G, T, I; SCALAR s; input H, P, R, s;"
      "HP = mmul(H, P); S = mmult(HP, H); G = madd(S, R); T = smmul(G, s); I = minv(T); return I;");
  ASSERT_NE(graph, nullptr);
  v1::Session session;
  DescribeBuffers(*graph, {{"elements", 8}}, &session);
  ASSERT_EQ(session.inputs_size(), 4);
  EXPECT_EQ(session.inputs(0).values().kind(), v1::InputValues::DEFAULT) << "not square";
  EXPECT_EQ(session.inputs(1).values().kind(), v1::InputValues::POSITIVE_DEFINITE);
  EXPECT_EQ(session.inputs(2).values().kind(), v1::InputValues::POSITIVE_DEFINITE);
  EXPECT_EQ(session.inputs(3).domain(), v1::POSITIVE);
}

TEST(Verification, TolerancesAreZeroWhereNothingIsRounded) {
  auto graph = Parse(
      "size m, n; matrix[m,n] A, B; vector[n] c, d; vector[m] r; scalar k; input A; B = exp(A); c = "
      "colmax(A); d = colmin(B);"
      "r = rowsum(A); k = argmax(r); return c, d, r, k;");
  ASSERT_NE(graph, nullptr);
  const std::vector<double> tolerances = OutputTolerances(*graph, {{"m", 100}, {"n", 1000000}});
  EXPECT_EQ(tolerances[0], 0);
  EXPECT_GT(tolerances[1], 0);
  EXPECT_GT(tolerances[2], 2e-6);
  EXPECT_LT(tolerances[2], 1e-5) << "sums keep their digits at any length";
  EXPECT_EQ(tolerances[3], 0) << "an index is exact, whatever it is the index of";
}

TEST(Verification, TolerancesOfF64SumsGrowWithTheirLength) {
  auto graph = Parse("size n; f64 vector[n] x, y; f64 scalar r; input x, y; r = dot(x, y); return r;");
  EXPECT_GT(OutputTolerances(*graph, {{"n", 1000000}})[0], 10 * OutputTolerances(*graph, {{"n", 100}})[0]);
}

TEST(Verification, WholeInputsGiveWholeOutputsUnlessSomethingRounds) {
  auto graph = Parse(
      "size m, n; matrix[m,n] A; vector[n] x, s, e; vector[m] y, z; scalar a; input A, x, a;"
      "y = gemv(a, A, x); z = gemv(0.3, A, x); s = colmax(A); e = exp(s); return y, z, s, e;");
  ASSERT_NE(graph, nullptr);
  v1::Session session;
  DescribeBuffers(*graph, {{"m", 8}, {"n", 4}}, &session);
  EXPECT_THAT(session.whole_outputs(), ::testing::ElementsAre(true, false, true, false));
  EXPECT_EQ(session.choosing_entries(), 4);
}

TEST(ExportedFolder, HasEverythingItNames) {
  auto graph = Parse("size n; vector[n] x, y; input x; y = neg(x); return y;");
  const SizeValues sizes = {{"n", 1000}};
  const CostModel model(DescribedDevice(v1::CUDA));
  std::string reason;
  NodeSet nodes;
  nodes.Add(0);
  auto implementations = ImplementFusion(*graph, nodes, sizes, model, {}, &reason);
  ASSERT_FALSE(implementations.empty()) << reason;
  auto code = LowerFusion(*graph, implementations[0], {.simt = true});
  auto reference = LowerFusion(*graph, ReferenceImplementation(*graph, NodeId{0}, sizes, model),
                               {.force_f64 = true, .simt = false});
  ASSERT_TRUE(code.ok() && reference.ok());
  const v1::Artifact artifact = ExportFolder(*graph, {.target = TargetOf(v1::CUDA),
                                                      .fusions = {&*code},
                                                      .reference = {&*reference},
                                                      .sizes = sizes,
                                                      .tolerances = {1e-5}});
  std::set<std::string> paths;
  for (const v1::ArtifactFile& file : artifact.files()) {
    EXPECT_FALSE(file.content().empty()) << file.path();
    EXPECT_EQ(file.path().find(".."), std::string::npos);
    paths.insert(file.path());
  }
  for (const char* path : {"fused.cu", "fused.h", "fusion_device.h", "example.cu", "reference.cc",
                           "CMakeLists.txt", "README.md"})
    EXPECT_TRUE(paths.count(path)) << path;
}

TEST(ExportedFolder, DeviceRuntimeIsOneText) {
  EXPECT_EQ(DeviceRuntime().find("#include \""), std::string::npos);
  for (const char* function : {"fu_infinity", "fu_sqrt", "fu_load", "fu_copy_async", "fu_group_reduce",
                               "fu_launch_begin", "fu_load_exchanged"})
    EXPECT_NE(DeviceRuntime().find(function), std::string::npos) << function;
}

TEST(ExportedFolder, OffersGraphsForCudaOnly) {
  auto graph = Parse("size n; vector[n] x, y; scalar a; input a, x; y = scal(a, x); return y;");
  const SizeValues sizes = {{"n", 1000}};
  for (const v1::Target target : {v1::CUDA, v1::HOST}) {
    const bool cuda = target == v1::CUDA;
    const CostModel model(DescribedDevice(target));
    const FusionImplementation implementation = ReferenceImplementation(*graph, NodeId{0}, sizes, model);
    auto code = LowerFusion(*graph, implementation, {.simt = cuda});
    auto reference = LowerFusion(*graph, implementation, {.force_f64 = true, .simt = false});
    ASSERT_TRUE(code.ok() && reference.ok());
    const v1::Artifact artifact = ExportFolder(*graph, {.target = TargetOf(target),
                                                        .fusions = {&*code},
                                                        .reference = {&*reference},
                                                        .sizes = sizes,
                                                        .tolerances = {1e-5}});
    std::string all;
    for (const v1::ArtifactFile& file : artifact.files())
      if (file.path().find("fusion_") == std::string::npos) all += file.content();
    EXPECT_NE(all.find("int fused_launch("), std::string::npos);
    EXPECT_EQ(
        cuda,
        all.find("int fused_graph(float a, const float* x, float* y, int64_t n_n, void* workspace_memory, "
                 "size_t workspace_bytes, int repetitions, cudaGraphExec_t* graph_exec)") !=
            std::string::npos);
    EXPECT_EQ(cuda, all.find("Graph") != std::string::npos);
  }
}

}  // namespace
}  // namespace fusion
