// Sums over the grid by atomic additions: where kernels set zeros and wait for them, and the memory that such
// sums take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/codegen/exported_folder.h"
#include "server/codegen/program.h"
#include "server/parse/parse.h"
#include "server/search/implementation_choice.h"
#include "server/skeletons/skeletons.h"
#include "server/target/target.h"
#include "tests/any_parameters.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Adds up in r; with a wait for the zeros before the addition, or without.
ir::Kernel Kernel(int sections, bool wait) {
  ir::Kernel kernel{
      .name = "k", .comment = "r", .parameters = {{"float*", "g_r"}, {"float*", "g_s"}, {"fu_index", "n"}}};
  kernel.zeroed = {{.pointer = "g_r", .count = "1", .value = "float(0)"},
                   {.pointer = "g_s", .count = "n", .value = "b * g_z[i]"}};
  for (int s = 0; s < sections; ++s) {
    ir::Section section{.group_threads = kernel.threads};
    section.body.push_back(ir::Text(absl::StrCat("before_", s, "();")));
    if (wait && s == 0) section.body.push_back(ir::ZeroWait());
    section.body.push_back(ir::Leader({absl::StrCat("fu_atomic_add(g_r, after_", s, ");")}));
    kernel.sections.push_back(std::move(section));
  }
  return kernel;
}

// The texts occur, each behind the one before.
void ExpectInOrder(const std::string& text, const std::vector<std::string>& parts) {
  size_t position = 0;
  for (const std::string& part : parts) {
    const size_t found = text.find(part, position);
    ASSERT_NE(found, std::string::npos) << part << "\n" << text;
    position = found + part.size();
  }
}

TEST(ZeroedEntries, BlocksArriveBeforeTheFirstSectionAndWaitWhereTheZerosAreNeeded) {
  for (int sections : {1, 2}) {
    ASSERT_TRUE(Kernel(sections, true).cooperative());
    const std::string text = TargetOf(v1::CUDA).Print(Kernel(sections, true));
    ExpectInOrder(
        text, {"i < 1; i += grid * 128) g_r[i] = float(0);", "i < n; i += grid * 128) g_s[i] = b * g_z[i];",
               // Only blocks that wrote zeros wait until these are seen.
               "fu_grid_arrive(block * 128 < 1 || block * 128 < n);", "before_0();",
               "fu_grid_wait(fu_zeros);", "fu_atomic_add(g_r, after_0);"});
    EXPECT_EQ(absl::StrContains(text, "fu_grid_barrier();"), sections == 2);
  }
}

TEST(ZeroedEntries, TheBarrierBetweenSectionsIsEnoughForLaterSums) {
  const std::string text = TargetOf(v1::CUDA).Print(Kernel(2, false));
  ExpectInOrder(text, {"g_r[i] = float(0);", "before_0();", "fu_grid_barrier();", "before_1();"});
  EXPECT_THAT(text, Not(HasSubstr("fu_grid_arrive")));
  EXPECT_THAT(text, Not(HasSubstr("fu_grid_wait")));
}

TEST(ZeroedEntries, WithoutThemThereIsNothingToWaitFor) {
  ir::Kernel kernel = Kernel(1, false);
  kernel.zeroed.clear();
  EXPECT_FALSE(kernel.cooperative());
  EXPECT_THAT(TargetOf(v1::CUDA).Print(kernel), Not(HasSubstr("fu_grid")));
  EXPECT_THAT(TargetOf(v1::HOST).Print(kernel), Not(HasSubstr("float(0)")));
}

TEST(ZeroedEntries, TheHostSetsThemBeforeItsThreadsStart) {
  const std::string text = TargetOf(v1::HOST).Print(Kernel(1, true));
  ExpectInOrder(text, {"for (fu_index i = 0; i < 1; ++i) g_r[i] = float(0);",
                       "for (fu_index i = 0; i < n; ++i) g_s[i] = b * g_z[i];", "#pragma omp parallel",
                       "fu_atomic_add(g_r, after_0);"});
  EXPECT_THAT(text, Not(HasSubstr("fu_grid")));
}

void ExpectEntriesOnce(const std::string& type, const std::string& column_sum, bool in_place) {
  v1::GraphSource source;
  source.set_fuse(absl::StrReplaceAll(
      absl::StrCat("size m, n; matrix[m,n] A; vector[n] p, s; vector[m] r, q; input A, p, r;"
                   "q = gemv(1.0, A, p, 1.0, r); s = ",
                   column_sum, "; return q, s;"),
      {{"matrix", type + " matrix"}, {"vector", type + " vector"}}));
  source.set_file_name("test.fuse");
  auto graph = ParseSource(source, *Catalog::BuiltIn());
  ASSERT_TRUE(graph.ok()) << graph.status();
  const SizeValues sizes = {{"m", 3000}, {"n", 1001}};
  const CostModel model(DescribedDevice(v1::CUDA));
  NodeSet both;
  both.Add(0);
  both.Add(1);
  std::string reason;
  bool seen[2] = {};
  for (const FusionImplementation& implementation :
       ImplementFusion(**graph, both, sizes, model, {.keep = 1000}, &reason)) {
    const bool atomic = testing::ParametersOf(implementation).atomic;
    if (implementation.skeleton != &CooperativeSkeleton() || seen[atomic]) continue;
    seen[atomic] = true;
    auto code = LowerFusion(**graph, implementation, {.simt = true});
    ASSERT_TRUE(code.ok()) << code.status();
    ASSERT_EQ(code->launches.size(), 1u);
    EXPECT_EQ(code->launches[0].kernel.zeroed.empty(), !atomic);
    EXPECT_EQ(absl::StrContains(TargetOf(v1::CUDA).Print(code->launches[0].kernel), "fu_atomic_add"), atomic);
    // The scaled parts are added up in the result itself where its root is not taken.
    ASSERT_EQ(code->workspace.size(), in_place && atomic ? 0u : 1u);
    if (in_place && atomic) continue;
    EXPECT_EQ(code->workspace[0].per_group, !atomic);
    const GridRule& grid = code->launches[0].grid;
    const int64_t groups = atomic ? 1 : GridGroups(grid, sizes, 132);
    // Entries that all groups add to are f64.
    const int bytes = atomic || type == "f64" ? 8 : 4;
    EXPECT_EQ(WorkspaceBytes(code->workspace[0], {grid}, sizes, 132), groups * 1001 * bytes);
    const v1::Program program =
        BuildProgram(**graph, sizes, {{&*code, "x"}}, {.name = "p", .multiprocessors = 132});
    EXPECT_GE(program.workspace_bytes(), groups * 1001 * bytes);
    EXPECT_LT(program.workspace_bytes(), groups * 1001 * bytes + 256);

    std::vector<FusionCode> reference;
    for (const Node& node : (*graph)->nodes())
      reference.push_back(*LowerFusion(**graph, ReferenceImplementation(**graph, node.id, sizes, model),
                                       {.force_f64 = true, .simt = false}));
    const v1::Artifact folder = ExportFolder(**graph, {.target = TargetOf(v1::CUDA),
                                                       .fusions = {&*code},
                                                       .reference = {&reference[0], &reference[1]},
                                                       .sizes = sizes,
                                                       .tolerances = {1e-5, 1e-5}});
    for (const v1::ArtifactFile& file : folder.files()) {
      if (file.path() != "fused.cu") continue;
      EXPECT_THAT(file.content(),
                  HasSubstr(absl::StrCat("scratch += FusedAlign((size_t)(",
                                         atomic ? "n_n" : "layout.grid_0_0 * 1 * n_n", ") * ", bytes, ");")));
    }
  }
  EXPECT_TRUE(seen[false]);
  EXPECT_TRUE(seen[true]);
}

TEST(AtomicSums, TakeTheirEntriesOnceWhereverWorkspaceIsCounted) {
  for (const std::string type : {"f32", "f64"}) {
    ExpectEntriesOnce(type, "colnrm2(A)", false);
    ExpectEntriesOnce(type, "gemtv(1.0, A, r)", type == "f64");
  }
}

// What the sum begins as must be at hand when the kernel starts.
TEST(AtomicSums, AreAddedToTheResultItselfInF64UnlessItsBeginIsComputed) {
  v1::GraphSource source;
  source.set_fuse(
      "size n; f64 matrix[n,n] A; f64 vector[n] p, q, s, t; input A, p; q = gemv(1.0, A, p); s = gemtv(1.0, "
      "A, p, "
      "1.0, q);"
      "t = gemtv(1.0, A, p, 1.0, p); return q, s, t;");
  source.set_file_name("test.fuse");
  auto graph = ParseSource(source, *Catalog::BuiltIn());
  ASSERT_TRUE(graph.ok()) << graph.status();
  NodeSet all, without_q;
  for (int i = 0; i < 3; ++i) all.Add(i);
  without_q.Add(1);
  without_q.Add(2);
  const auto& nodes = (*graph)->nodes();
  EXPECT_FALSE(AddsInPlace(**graph, nodes[1], all));
  EXPECT_TRUE(AddsInPlace(**graph, nodes[1], without_q));
  EXPECT_TRUE(AddsInPlace(**graph, nodes[2], all));
}

// Hundreds of groups would each round what is there by then.
TEST(AtomicSums, OfF32AreAddedUpInF64) {
  v1::GraphSource source;
  source.set_fuse("size n; matrix[n,n] A; vector[n] p, s; input A, p; s = gemtv(1.0, A, p); return s;");
  source.set_file_name("test.fuse");
  auto graph = ParseSource(source, *Catalog::BuiltIn());
  ASSERT_TRUE(graph.ok()) << graph.status();
  NodeSet none;
  EXPECT_FALSE(AddsInPlace(**graph, (*graph)->nodes()[0], none));
}

}  // namespace
}  // namespace fusion
