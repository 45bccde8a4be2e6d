#include "server/codegen/kernel_versions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/codegen/exported_launch.h"
#include "server/codegen/program.h"
#include "server/codegen/source.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/any_parameters.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kWholeCode[] = "constexpr bool fu_whole = true";
constexpr char kGuardedCode[] = "constexpr bool fu_whole = false";

class KernelVersions : public ::testing::Test {
 protected:
  void SetUp() override { Parse("t = gemv(1.0, A, x); y = gemtv(1.0, A, t); return y;"); }

  void Parse(const std::string& calls) {
    v1::GraphSource source;
    source.set_fuse(absl::StrCat("size m, n; matrix[m,n] A; vector[n] x, y; vector[m] t; input A; input ",
                                 absl::StrContains(calls, "t =") ? "x" : "t", "; ", calls));
    auto graph = ParseSource(source, *Catalog::BuiltIn());
    ASSERT_TRUE(graph.ok()) << graph.status();
    graph_ = *graph;
  }

  // The code of the first implementation of the whole graph that `wanted` accepts, planned for rows of 4096.
  template <class Wanted>
  FusionCode Find(Wanted wanted) {
    SearchOptions options;
    options.implementation.keep = 400;
    auto space =
        SearchFusions(*graph_, {{"m", 4096}, {"n", 4096}}, CostModel(DescribedDevice(v1::CUDA)), options);
    EXPECT_TRUE(space.ok()) << space.status();
    for (const FusionImplementation& implementation : space->implementations) {
      if (implementation.fusion.nodes.Size() != graph_->node_count() || !wanted(implementation)) continue;
      auto code = LowerFusion(*graph_, implementation, {.simt = true});
      EXPECT_TRUE(code.ok()) << code.status();
      return *std::move(code);
    }
    ADD_FAILURE() << "no such implementation";
    return {};
  }
  static bool FillsRows(const FusionImplementation& implementation) {
    const testing::AnyParameters p = testing::ParametersOf(implementation);
    return implementation.skeleton == &RowPanelSkeleton() && !p.ragged && !p.column_tiles && p.chunks > 0 &&
           p.vector_width == 4 && int64_t{p.chunks} * p.threads_per_row * p.vector_width == 4096;
  }
  std::string SourceAt(const FusionCode& code, int64_t n) {
    const SizeValues sizes = {{"m", 100}, {"n", n}};
    return PrintSource(code, TargetOf(v1::CUDA), false, &sizes);
  }
  v1::Program ProgramAt(const FusionCode& code, int64_t n) {
    return BuildProgram(*graph_, {{"m", 100}, {"n", n}}, {{&code, "x"}}, {.name = "p", .multiprocessors = 4});
  }

  std::shared_ptr<const Graph> graph_;
};

TEST_F(KernelVersions, SizesThatVectorsFillHaveAKernelOfTheirOwn) {
  const FusionCode code = Find(FillsRows);
  ASSERT_FALSE(code.launches.empty());
  const KernelLaunch& launch = code.launches[0];
  ASSERT_TRUE(launch.whole.has_value());
  EXPECT_TRUE(LaunchesWhole(launch, {{"m", 7}, {"n", 4096}}));
  EXPECT_TRUE(NeedsAlignment(launch, {{"m", 7}, {"n", 4096}}));
  for (int64_t n : {0, 1, 4092, 4095}) EXPECT_FALSE(LaunchesWhole(launch, {{"m", 7}, {"n", n}})) << n;
  const std::string whole = launch.kernel.name + "_whole";
  EXPECT_EQ(ProgramAt(code, 4096).launches(0).kernel(), whole);
  EXPECT_EQ(ProgramAt(code, 4095).launches(0).kernel(), launch.kernel.name);
}

TEST_F(KernelVersions, ASourceForSizesHasTheKernelThatTheyLaunchAlone) {
  const FusionCode code = Find(FillsRows);
  EXPECT_THAT(SourceAt(code, 4096), HasSubstr(kWholeCode));
  EXPECT_THAT(SourceAt(code, 4096), HasSubstr("fu_expect(n_n == 4096"));
  EXPECT_THAT(SourceAt(code, 4096), Not(HasSubstr(kGuardedCode)));
  EXPECT_THAT(SourceAt(code, 4095), HasSubstr(kGuardedCode));
  EXPECT_THAT(SourceAt(code, 4095), Not(HasSubstr(kWholeCode)));
  EXPECT_THAT(SourceAt(code, 4095), Not(HasSubstr("fu_expect(")));
  const std::string both = PrintSource(code, TargetOf(v1::CUDA), false);
  EXPECT_THAT(both, HasSubstr(kWholeCode));
  EXPECT_THAT(both, HasSubstr(kGuardedCode));
}

TEST_F(KernelVersions, ExportedCodeChoosesBySizesAndAddresses) {
  const FusionCode code = Find(FillsRows);
  const std::string text = PrintLaunchCode(*graph_, {&code}, {.target = TargetOf(v1::CUDA)});
  const std::string& name = code.launches[0].kernel.name;
  EXPECT_THAT(text, HasSubstr(absl::StrCat(" ? ", name, "_whole : ", name, ")")));
  EXPECT_THAT(text, HasSubstr("(n_n == 4096 && "));
  EXPECT_THAT(text, HasSubstr(" % 16 == 0"));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("FusedLoad((const void*)", name, "_whole)")));
}

// Of the tiles of a ragged row all but the last are whole.
TEST_F(KernelVersions, TilesDoWithoutGuardsAtOtherSizesToo) {
  Parse("y = gemtv(1.0, A, t); return y;");
  const FusionCode code = Find([](const FusionImplementation& implementation) {
    return testing::ParametersOf(implementation).tile_rows > 0;
  });
  ASSERT_FALSE(code.launches.empty());
  const KernelLaunch& launch = code.launches[0];
  ASSERT_TRUE(launch.whole.has_value());
  ASSERT_EQ(launch.whole->sizes[0].kind, WholeCondition::OfSize::Kind::kMultiple);
  const int64_t tile = launch.whole->sizes[0].number;
  EXPECT_TRUE(LaunchesWhole(launch, {{"m", 7}, {"n", 3 * tile}}));
  EXPECT_FALSE(LaunchesWhole(launch, {{"m", 7}, {"n", 3 * tile + 4}}));
  EXPECT_FALSE(LaunchesWhole(launch, {{"m", 7}, {"n", 0}}));
  EXPECT_THAT(SourceAt(code, 3 * tile), Not(HasSubstr(kGuardedCode)));
  EXPECT_THAT(SourceAt(code, 3 * tile + 4), HasSubstr(kGuardedCode));
  EXPECT_THAT(SourceAt(code, 3 * tile + 4), HasSubstr(kWholeCode));
}

// One kernel with several such sections is chosen by all of their conditions.
TEST_F(KernelVersions, SectionsThatAskForTheSameAreChosenTogether) {
  const FusionCode code = Find([](const FusionImplementation& implementation) {
    return implementation.skeleton == &CooperativeSkeleton() &&
           std::all_of(testing::SweepsOf(implementation).begin(), testing::SweepsOf(implementation).end(),
                       [](const FusionImplementation& sweep) { return FillsRows(sweep); });
  });
  ASSERT_EQ(code.launches.size(), 1u);
  ASSERT_TRUE(code.launches[0].whole.has_value());
  EXPECT_TRUE(code.launches[0].whole->exact);
  EXPECT_THAT(SourceAt(code, 4096), Not(HasSubstr(kGuardedCode)));
  EXPECT_THAT(SourceAt(code, 4095), Not(HasSubstr(kWholeCode)));
}

}  // namespace
}  // namespace fusion
