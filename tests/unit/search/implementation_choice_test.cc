#include "server/search/implementation_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "server/target/target.h"
#include "tests/any_parameters.h"
#include "tests/example_source.h"
#include "tests/unit/search/parsed_text.h"

namespace fusion {
namespace {

// The search of an example, all sizes the same, for the described H100, with room for most implementations.
struct ExampleSearch {
  std::shared_ptr<const Graph> graph;
  SearchSpace space;
};
ExampleSearch Search(const std::string& example, bool deterministic, int64_t size = 2048) {
  auto graph = ParseSource(testing::ExampleSource(example), *Catalog::BuiltIn());
  EXPECT_TRUE(graph.ok()) << graph.status();
  SizeValues sizes;
  for (const Size& named : (*graph)->sizes()) sizes[named.name] = size;
  SearchOptions options;
  options.implementation.keep = 60;
  options.implementation.deterministic = deterministic;
  auto space = SearchFusions(**graph, sizes, CostModel(DescribedDevice(v1::CUDA)), options);
  EXPECT_TRUE(space.ok()) << space.status();
  return {*graph, *std::move(space)};
}

bool HasAtomicSums(const FusionImplementation& implementation) {
  bool atomic = testing::ParametersOf(implementation).atomic;
  for (const FusionImplementation& sweep : testing::SweepsOf(implementation)) atomic |= HasAtomicSums(sweep);
  return atomic;
}

// Softmax of f64 rows: 2.4 times as long as predicted with a warp a row and everything in its registers, 1.0
// times with a block a row (H200). What was measured of one says little of the other.
TEST(StructureOf, SetsRowsByAPartOfABlockApart) {
  const ExampleSearch search = Search("softmax", false);
  std::set<Structure> by_blocks, by_groups;
  for (const FusionImplementation& implementation : search.space.implementations) {
    if (implementation.skeleton != &RowPanelSkeleton() ||
        testing::ParametersOf(implementation).cluster_blocks > 1)
      continue;
    const bool groups =
        testing::ParametersOf(implementation).threads_per_row < testing::ParametersOf(implementation).threads;
    (groups ? by_groups : by_blocks).insert(StructureOf(implementation));
  }
  EXPECT_FALSE(by_blocks.empty());
  EXPECT_FALSE(by_groups.empty());
  for (const Structure& structure : by_groups) EXPECT_FALSE(by_blocks.contains(structure));
}

// SGEMVT reads its matrix of 268 MB twice. The second sweep begins with the rows that the first read last:
// the L2 cache (50 MB) has some of them, and these are the ones that blocks keep, so both are no more than
// the larger.
TEST(Cooperative, FindsTheLastRowsInTheL2CacheOrKept) {
  constexpr double kMatrix = 4.0 * 8192 * 8192, kInL2 = 0.6 * (50 << 20);
  double plain = 0, keeping = 0;
  for (const FusionImplementation& made : Search("sgemvt", false, 8192).space.implementations) {
    if (made.skeleton != &CooperativeSkeleton() || testing::SweepsOf(made).size() < 2) continue;
    double kept = 0;
    for (const FusionImplementation& sweep : testing::SweepsOf(made))
      if (testing::ParametersOf(sweep)
              .kept.any())  // by each block of the grid: of 132 multiprocessors, 32 KiB a row
        kept = 132.0 *
               (testing::ParametersOf(sweep).kept.shared_rows +
                testing::ParametersOf(sweep).kept.register_rows) *
               32768 * std::max(1, testing::ParametersOf(made).blocks_per_multiprocessor);
    const double again = 2 * kMatrix - made.estimate.bytes;
    EXPECT_LE(again, 1.001 * std::max(kept, kInL2));
    (kept > 0 ? keeping : plain) = std::max(kept > 0 ? keeping : plain, again);
  }
  EXPECT_GT(plain, 0.8 * kInL2);  // vectors and sums by parts are among the bytes
  EXPECT_GT(keeping, plain);
}

// Products of 4 x 4 matrices: 1.12 times the floor where each thread loads its own, 1.01 where lanes exchange
// what they loaded (BENCHMARKS.md, H200).
TEST(ChooseElement, ExchangesElementsOfTwoFourOrEightTimes16Bytes) {
  for (const auto& [type, exchanged] :
       {std::pair("MATRIX4x4", true), std::pair("f64 MATRIX4x4", true), std::pair("f64 MATRIX2x2", true),
        std::pair("MATRIX2x2", false), std::pair("MATRIX3x3", false), std::pair("MATRIX8x8", false),
        std::pair("MATRIX6x4", false)}) {
    const auto graph = testing::ParsedText(absl::StrCat(type, " A, B;\ninput A;\nB = neg(A);\nreturn B;\n"));
    for (const v1::Target target : {v1::CUDA, v1::HOST}) {
      auto space =
          SearchFusions(*graph, {{"elements", 100'000}}, CostModel(DescribedDevice(target)), SearchOptions());
      ASSERT_TRUE(space.ok()) << space.status();
      int found = 0;
      for (const FusionImplementation& implementation : space->implementations)
        if (testing::ParametersOf(implementation).load_path == LoadPath::kExchanged) {
          ++found;
          EXPECT_EQ(testing::ParametersOf(implementation).shared_entries, 0);
        }
      EXPECT_EQ(found > 0, exchanged && target == v1::CUDA) << type;
    }
  }
}

// Products of 32 x 32 matrices: 1.09 times the floor with four of them for 128 threads, 1.06 with two for 64
// (H200, kernels by hand).
TEST(ChooseElement, OffersSmallBlocksWithTwoItemsAThread) {
  for (const auto& [side, elements] : {std::pair(32, 2), std::pair(16, 8), std::pair(8, 32)}) {
    const std::string type = absl::StrCat("MATRIX", side, "x", side);
    const auto graph =
        testing::ParsedText(absl::StrCat(type, " A, B, C;\ninput A, B;\nC = mmul(A, B);\nreturn C;\n"));
    SearchOptions options;
    options.implementation.keep = 60;
    auto space = SearchFusions(*graph, {{"elements", 65'536}}, CostModel(DescribedDevice(v1::CUDA)), options);
    ASSERT_TRUE(space.ok()) << space.status();
    bool found = false;
    for (const FusionImplementation& implementation : space->implementations)
      found |= testing::ParametersOf(implementation).threads == 64 &&
               testing::ParametersOf(implementation).elements_per_block == elements &&
               absl::StrContains(Describe(*graph, implementation), "mmul_tile");
    EXPECT_TRUE(found) << type;
  }
}

// Rows of 7 entries are copied by 16 bytes all the same, and a tile of each operand begins at such.
TEST(ChooseElement, ValuesInSharedMemoryBeginAtMultiplesOf16Bytes) {
  const auto graph = testing::ParsedText(
      "MATRIX7x7 A, B, C;\nMATRIX32x32 D, E, M, F;\nSCALAR s;\nf64 MATRIX3x3 G, H;\ninput A, B, D, E, G;\n"
      "C = mmul(A, B);\ns = mtrace(C);\nM = mmul(D, E);\nF = smmul(M, s);\nH = mmul(G, G);\n"
      "return F, H;\n");
  SearchOptions options;
  options.implementation.keep = 1000;
  auto space = SearchFusions(*graph, {{"elements", 65'536}}, CostModel(DescribedDevice(v1::CUDA)), options);
  ASSERT_TRUE(space.ok()) << space.status();
  int checked = 0;
  for (const FusionImplementation& implementation : space->implementations) {
    int64_t bytes = 4;
    for (const PlacedValue& placed : testing::ParametersOf(implementation).placement)
      bytes = std::max<int64_t>(bytes, DataTypeBytes(graph->value(placed.value).type.data_type));
    for (const PlacedValue& placed : testing::ParametersOf(implementation).placement) {
      if (placed.storage != StorageClass::kShared) continue;
      EXPECT_EQ(placed.offset * testing::ParametersOf(implementation).elements_per_block * bytes % 16, 0)
          << Describe(*graph, implementation);
      checked += placed.offset > 0;
    }
  }
  EXPECT_GT(checked, 100);
}

// Too many combinations of functions to try them all: those in which all elements are shared by several
// threads remain. One thread would do too much for matrices of 32 x 32.
TEST(ChooseElement, OfManyCombinationsThoseOfSeveralThreadsRemain) {
  for (const std::string type : {"", "f64 "}) {
    const auto graph = testing::ParsedText(
        type +
        "MATRIX32x32 A, B, C, D, M, N, E;\ninput A, B, C, D;\nM = mmul(A, B);\nN = mmul(M, C);\n"
        "E = madd(N, D);\nreturn E;\n");
    SearchOptions options;
    options.implementation.keep = 1000;
    auto space = SearchFusions(*graph, {{"elements", 65'536}}, CostModel(DescribedDevice(v1::CUDA)), options);
    ASSERT_TRUE(space.ok()) << space.status();
    std::set<std::string> whole;
    for (const FusionImplementation& implementation : space->implementations) {
      const std::string text = Describe(*graph, implementation);
      if (implementation.order.size() == 3) whole.insert(text.substr(text.find('[')));
    }
    EXPECT_TRUE(whole.contains("[mmul_tile,mmul_tile,madd_entry]"));
    EXPECT_TRUE(whole.contains("[mmul_entry,mmul_entry,madd_entry]"));
    EXPECT_EQ(whole.contains("[mmul_warp,mmul_warp,madd_entry]"), !type.empty());
  }
}

// Which shares of inputs kernels of an example ask the L2 cache to keep, over matrices of 2048 square of f64.
std::set<int> L2Shares(const std::string& example, const DeviceDescription& device, double warm_bytes) {
  std::string text = testing::ExampleSource(example).fuse();
  text = absl::StrReplaceAll(
      text, {{"matrix[", "f64 matrix["}, {"vector[", "f64 vector["}, {"scalar ", "f64 scalar "}});
  const auto graph = testing::ParsedText(text);
  SizeValues sizes;
  for (const Size& size : graph->sizes()) sizes[size.name] = 2048;
  SearchOptions options;
  options.implementation.keep = 60;
  auto space = SearchFusions(*graph, sizes, CostModel(device, warm_bytes), options);
  EXPECT_TRUE(space.ok()) << space.status();
  std::set<int> shares;
  for (const FusionImplementation& implementation : space->implementations) {
    const testing::AnyParameters parameters = testing::ParametersOf(implementation);
    shares.insert(parameters.l2_percent);
    EXPECT_EQ(testing::TraitsOf(implementation).in_l2, parameters.l2_percent > 0);
    if (parameters.l2_percent == 0) continue;
    EXPECT_EQ(parameters.stages, 0) << Describe(*graph, implementation);
    EXPECT_EQ(parameters.vector_width * 8 % 16, 0) << Describe(*graph, implementation);
  }
  return shares;
}

TEST(L2Share, IsWhatTheCacheHoldsOfInputsThatRunAfterRunReads) {
  DeviceDescription device = DescribedDevice(v1::CUDA);
  ASSERT_EQ(device.l2_bytes(), 50 << 20);
  // Two matrices of 33.5 MB; half of 50 MiB is 35 % of them.
  constexpr double kBytes = 67e6;
  EXPECT_THAT(L2Shares("gesummv", device, kBytes), ::testing::ElementsAre(0, 35));
  EXPECT_THAT(L2Shares("gesummv", device, 0), ::testing::ElementsAre(0)) << "cold";
  device.set_l2_bytes(100 << 20);
  EXPECT_THAT(L2Shares("gesummv", device, kBytes), ::testing::ElementsAre(0, 75));
  device.set_l2_bytes(200 << 20);
  EXPECT_THAT(L2Shares("gesummv", device, kBytes), ::testing::ElementsAre(0)) << "all of it stays anyway";
  device = DescribedDevice(v1::CUDA, "sm_75");
  EXPECT_THAT(L2Shares("gesummv", device, kBytes), ::testing::ElementsAre(0)) << "sm_75 cannot say so";
}

TEST(L2Share, IsLessBesideResultsAndNothingWhereTheyAreFarFromFitting) {
  DeviceDescription device = DescribedDevice(v1::CUDA);
  // 67 MB of inputs and 34 of results: 2 and 1.3 times the cache.
  constexpr double kBytes = 101e6;
  EXPECT_THAT(L2Shares("madd", device, kBytes), ::testing::ElementsAre(0));
  device.set_l2_bytes(75 << 20);
  EXPECT_THAT(L2Shares("madd", device, kBytes), ::testing::ElementsAre(0, 35)) << "0.3 * 75 MiB";
}

TEST(L2Share, OfRowsIsLessBesideResultsWhereBothDoNotNearlyFit) {
  DeviceDescription device = DescribedDevice(v1::CUDA);
  // 33.5 MB each.
  constexpr double kBytes = 67e6;
  EXPECT_THAT(L2Shares("layer_norm", device, kBytes), ::testing::ElementsAre(0, 30, 45))
      << "0.2 * 50 MiB, of vectors 0.3";
  device.set_l2_bytes(90 << 20);
  EXPECT_THAT(L2Shares("layer_norm", device, kBytes), ::testing::ElementsAre(0, 80)) << "0.3 * 90 MiB";
}

// Rows that cooperative kernels of 512 threads keep of B = A + u v' of 2048 square, 16 a block: in registers
// and beside them in shared memory.
std::set<std::pair<int, int>> KeptInBoth(const std::string& type) {
  const auto graph =
      testing::ParsedText(absl::StrReplaceAll("size n = 2048; TYPE matrix[n,n] A, B; TYPE vector[n] u, v, y, "
                                              "x, w; input A, u, v, y; B = ger(A, u, v);"
                                              "x = gemtv(1.0, B, y); w = gemv(1.0, B, x); return B, x, w;",
                                              {{"TYPE", type}}));
  SearchOptions options;
  options.implementation.keep = 1000;
  auto space = SearchFusions(*graph, {{"n", 2048}}, CostModel(DescribedDevice(v1::CUDA)), options);
  EXPECT_TRUE(space.ok()) << space.status();
  std::set<std::pair<int, int>> kept;
  for (const FusionImplementation& implementation : space->implementations) {
    if (implementation.fusion.nodes.Size() != graph->node_count() ||
        testing::SweepsOf(implementation).size() != 2)
      continue;
    if (testing::ParametersOf(implementation).threads != 512) continue;
    const KeptRows rows = testing::ParametersOf(testing::SweepsOf(implementation).back()).kept;
    if (rows.register_rows > 0 && rows.shared_rows > 0) kept.emplace(rows.register_rows, rows.shared_rows);
  }
  return kept;
}

TEST(KeptRows, AreAlsoAsFewInRegistersAsSharedMemoryLeaves) {
  EXPECT_THAT(KeptInBoth("f32"), ::testing::ElementsAre(std::pair(4, 12), std::pair(8, 8)));
}

TEST(KeptRows, ThatAreComputedAreInRegistersBesideTheirOperands) {
  // Rows of 16 KiB: 8 of them take 64 registers of a thread, and with those of A more than the 128 there are.
  EXPECT_THAT(KeptInBoth("f64"), ::testing::ElementsAre(std::pair(4, 12)));
}

class AtomicSumsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(AtomicSumsTest, AreAmongTheImplementationsOfCooperativeFusionsAlone) {
  const ExampleSearch search = Search(GetParam(), false);
  int atomic = 0;
  for (const FusionImplementation& implementation : search.space.implementations) {
    if (!HasAtomicSums(implementation)) continue;
    ++atomic;
    // Blocks must wait for the zeros, which takes a cooperative launch; and all sweeps agree.
    EXPECT_EQ(implementation.skeleton, &CooperativeSkeleton()) << Describe(*search.graph, implementation);
    EXPECT_TRUE(testing::ParametersOf(implementation).atomic) << Describe(*search.graph, implementation);
    EXPECT_TRUE(testing::TraitsOf(implementation).atomic);
    ASSERT_FALSE(testing::SweepsOf(implementation).empty());
    for (const FusionImplementation& sweep : testing::SweepsOf(implementation))
      EXPECT_TRUE(testing::ParametersOf(sweep).atomic);
  }
  EXPECT_GT(atomic, 0);
}

TEST_P(AtomicSumsTest, AreLeftOutWhereResultsMustBeDeterministic) {
  const ExampleSearch search = Search(GetParam(), true);
  int cooperative = 0;
  for (const FusionImplementation& implementation : search.space.implementations) {
    EXPECT_FALSE(HasAtomicSums(implementation)) << Describe(*search.graph, implementation);
    cooperative += implementation.skeleton == &CooperativeSkeleton();
  }
  // With partial results they are still there.
  EXPECT_GT(cooperative, 0);
}

INSTANTIATE_TEST_SUITE_P(Examples, AtomicSumsTest, ::testing::Values("axpydot", "bicgk", "cg_step"),
                         [](const auto& info) { return info.param; });

// A large graph's fusions keep few implementations each; that of everything keeps all 20 ways with vectors.
TEST(SearchFusions, TheFusionOfTheWholeGraphKeepsMore) {
  auto graph = ParseSource(testing::ExampleSource("black_scholes"), *Catalog::BuiltIn());
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto space =
      SearchFusions(**graph, {{"n", 1 << 26}}, CostModel(DescribedDevice(v1::CUDA)), SearchOptions());
  ASSERT_TRUE(space.ok()) << space.status();
  std::map<std::vector<NodeId>, int> kept;
  for (const FusionImplementation& implementation : space->implementations) {
    std::vector<NodeId> nodes = implementation.order;
    std::sort(nodes.begin(), nodes.end());
    ++kept[nodes];
  }
  int whole = 0, most_of_others = 0;
  for (const auto& [nodes, count] : kept) {
    int& place = static_cast<int>(nodes.size()) == (*graph)->node_count() ? whole : most_of_others;
    place = std::max(place, count);
  }
  EXPECT_GT(kept.size(), 64u);
  EXPECT_EQ(whole, 20);
  EXPECT_EQ(most_of_others, SearchOptions().implementation.keep);
}

}  // namespace
}  // namespace fusion
