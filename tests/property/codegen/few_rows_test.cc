// Matrices of few and very long rows: blocks have tiles of some rows and a part of the columns. And of rows
// that fill no warp: groups of a few lanes have one. What a second kernel puts together, and what a tile with
// all rows completes, is what the unfused f64 reference computes, also at sizes that the kernels were not
// planned for.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/any_parameters.h"
#include "tests/example_source.h"
#include "tests/property/codegen/host_execution.h"

namespace fusion::testing {
namespace {

// Maps and row reductions of one matrix, with operands of rows that are computed beside it, stored and, of
// `twice`, needed again when a row's sum is finished; maps over rows and over columns that follow reductions.
constexpr char kOperandsSource[] = R"(
size m = 3, n = 100003;
matrix[m,n] A, B;  vector[m] u, y, twice, moved, q, z, r, largest;  vector[n] v, p, s, t, most;
scalar a, b, c;
input A, u, v, p, y, a, b;
c = mul(a, b);
twice = vadd(u, u);
moved = scal(c, y);
B = ger(A, twice, v);
q = gemv(c, B, p, b, moved);
z = vadd(q, twice);
r = vmul(z, y);
largest = rowmax(B);
s = gemtv(c, B, moved, a, v);
most = colmax(B);
t = vadd(s, p);
return B, twice, q, r, largest, s, t, most;
)";

std::shared_ptr<const Graph> Parsed(const std::string& example) {
  auto graph = ParseSource(example.empty() ? TextSource(kOperandsSource) : ExampleSource(example),
                           *Catalog::BuiltIn());
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *graph : nullptr;
}

bool HasTiles(const FusionImplementation& implementation) {
  return ParametersOf(implementation).tile_rows > 0;
}

bool HasSmallGroups(const FusionImplementation& implementation) {
  const int lanes = ParametersOf(implementation).threads_per_row;
  return implementation.skeleton == &RowPanelSkeleton() && lanes > 0 && lanes < 32;
}

// Of each fusion some that differ, no more than can be compiled soon.
std::vector<FusionImplementation> Chosen(const Graph& graph, int64_t m, int64_t n,
                                         bool (*wanted)(const FusionImplementation&)) {
  SearchOptions options;
  options.implementation.keep = 60;
  options.implementation.wanted = wanted;
  auto space = SearchFusions(graph, {{"m", m}, {"n", n}}, CostModel(DescribedDevice(v1::CUDA)), options);
  EXPECT_TRUE(space.ok()) << space.status();
  std::map<std::string, int> seen;
  std::vector<FusionImplementation> chosen;
  if (!space.ok()) return chosen;
  for (const FusionImplementation& implementation : space->implementations) {
    const AnyParameters p = ParametersOf(implementation);
    if (!wanted(implementation)) continue;
    const std::string nodes = absl::StrJoin(implementation.fusion.nodes.Members(), ",");
    const std::string kind = absl::StrCat(nodes, "/", p.vector_width, " ", p.rows_per_step > 1, " ",
                                          p.tile_rows > 4, " ", p.blocks_per_multiprocessor == 0);
    if (seen[kind]++ == 0 && seen[nodes]++ < 3) chosen.push_back(implementation);
  }
  // The largest fusions, and an even choice of the others.
  constexpr size_t kMost = 12;
  if (chosen.size() <= kMost) return chosen;
  std::vector<FusionImplementation> kept(chosen.end() - kMost / 3, chosen.end());
  const size_t rest = chosen.size() - kept.size(), others = kMost - kept.size();
  for (size_t i = 0; i < others; ++i) kept.push_back(chosen[i * rest / others]);
  return kept;
}

using Shape = std::pair<int64_t, int64_t>;  // rows, columns

// Those planned for the shapes `planned`, run at these and at the shapes `others`.
void ExpectReferenceResults(const Graph& graph, bool (*wanted)(const FusionImplementation&),
                            const std::vector<Shape>& planned, const std::vector<Shape>& others) {
  std::vector<FusionImplementation> implementations;
  for (const auto& [m, n] : planned) {
    const std::vector<FusionImplementation> chosen = Chosen(graph, m, n, wanted);
    EXPECT_FALSE(chosen.empty()) << m << " x " << n;
    implementations.insert(implementations.end(), chosen.begin(), chosen.end());
  }
  std::vector<FusionCode> codes;
  for (const FusionImplementation& implementation : implementations) {
    auto code = LowerFusion(graph, implementation, {.simt = true});
    ASSERT_TRUE(code.ok()) << code.status() << Describe(graph, implementation);
    EXPECT_TRUE(code->limits.empty() || !HasTiles(implementation));
    codes.push_back(*std::move(code));
  }
  const auto compared =
      ComparedCodes::Compile(graph, {{"m", planned[0].first}, {"n", planned[0].second}}, codes);
  ASSERT_TRUE(compared.ok()) << compared.status();
  std::vector<ValueId> produced;
  for (const Node& node : graph.nodes()) produced.push_back(node.result);
  std::vector<Shape> shapes = planned;
  shapes.insert(shapes.end(), others.begin(), others.end());
  std::vector<int> runs(codes.size(), 0);
  for (const auto& [m, n] : shapes) {
    const SizeValues sizes = {{"m", m}, {"n", n}};
    Values inputs;
    RandomInputs(graph, sizes, 5, &inputs);
    Values expected = inputs;
    auto status = (*compared)->RunReference(sizes, produced, &expected);
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < codes.size(); ++i) {
      if (!codes[i].limits.empty() && n > codes[i].limits[0].limit) continue;
      ++runs[i];
      const FusionImplementation& implementation = implementations[i];
      Values values = expected;
      auto run = RunOnHost(graph, sizes, (*compared)->module(), {&codes[i]}, 132, false, implementation.loads,
                           implementation.stores, &values);
      ASSERT_TRUE(run.ok()) << run << " " << Describe(graph, implementation);
      for (ValueId id : implementation.stores)
        EXPECT_LE(RelativeError(values[id.value], expected[id.value]), 2e-4)
            << Describe(graph, implementation) << ": " << graph.value(id).name << " at " << m << " x " << n;
    }
  }
  for (int count : runs) EXPECT_GE(count, 4);
}

class FewRows : public ::testing::TestWithParam<std::string> {};

TEST_P(FewRows, TilesComputeWhatTheReferenceComputes) {
  const auto graph = Parsed(GetParam());
  ASSERT_NE(graph, nullptr);
  ExpectReferenceResults(*graph, HasTiles, {{3, 100003}, {100, 20480}},
                         {{1, 65536}, {4, 8192}, {37, 4099}, {131, 1030}, {1, 1}, {3, 0}, {0, 5001}});
}

TEST_P(FewRows, SmallGroupsComputeWhatTheReferenceComputes) {
  const auto graph = Parsed(GetParam());
  ASSERT_NE(graph, nullptr);
  ExpectReferenceResults(*graph, HasSmallGroups, {{5003, 4}, {30011, 13}},
                         {{1001, 3}, {100, 2}, {33, 1}, {1, 4}, {0, 4}, {7, 0}});
}

INSTANTIATE_TEST_SUITE_P(All, FewRows,
                         ::testing::Values("", "atax", "bicgk", "gemver", "gesummv", "layer_norm", "rms_norm",
                                           "sgemv", "sgemvt", "softmax"),
                         [](const auto& info) { return info.param.empty() ? "operands" : info.param; });

}  // namespace
}  // namespace fusion::testing
