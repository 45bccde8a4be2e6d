// Rows wider than the registers or the shared memory of a block hold: column reductions walk over the rows
// once for each part of their columns. At such a width, and at small ones, the result is that of a plain sum.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/any_parameters.h"
#include "tests/example_source.h"
#include "tests/property/codegen/host_execution.h"

namespace fusion::testing {
namespace {

// B_ij = A_ij + u_i v_j, x_j = beta sum_i B_ij y_i, s_j = sum_i B_ij: two column reductions of one computed
// matrix.
constexpr char kSource[] = R"(
size m = 5, n = 200003;
matrix[m,n] A, B;  vector[m] u, y;  vector[n] v, x, s;  scalar beta;
input A, u, v, y, beta;
B = ger(A, u, v);
x = gemtv(beta, B, y);
s = colsum(B);
return x, s;
)";

TEST(WideRows, ColumnReductionsAreThoseOfAPlainSum) {
  auto parsed = ParseSource(TextSource(kSource), *Catalog::BuiltIn());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Graph& graph = **parsed;
  const SizeValues wide = {{"m", 5}, {"n", 200003}};
  SearchOptions options;
  options.implementation.keep = 100;
  auto space = SearchFusions(graph, wide, CostModel(DescribedDevice(v1::CUDA)), options);
  ASSERT_TRUE(space.ok()) << space.status();

  // The fusion of all nodes in both tiled forms: a block for each tile, which is so much better for few rows
  // that the other is not kept, and all parts of the columns in turn.
  std::vector<FusionImplementation> implementations;
  for (const FusionImplementation& implementation : space->implementations) {
    if (implementation.fusion.nodes.Size() != graph.node_count() ||
        testing::ParametersOf(implementation).tile_rows == 0)
      continue;
    implementations.push_back(implementation);
    FusionImplementation in_turn = implementation;
    auto& parameters = in_turn.As<RowPanelParameters>();
    parameters.tile_rows = 0;
    parameters.rows_per_step = parameters.resident_blocks = parameters.blocks_per_multiprocessor = 1;
    implementations.push_back(in_turn);
  }
  ASSERT_GE(implementations.size(), 16u);
  std::vector<FusionCode> codes;
  for (const FusionImplementation& implementation : implementations) {
    auto code = LowerFusion(graph, implementation, {.simt = true});
    ASSERT_TRUE(code.ok()) << code.status() << Describe(graph, implementation);
    EXPECT_TRUE(code->limits.empty());
    codes.push_back(*std::move(code));
  }
  // The reference of gemtv at this width, whose accumulators do not fit shared memory either.
  const CostModel device(DescribedDevice(v1::CUDA));
  const FusionImplementation reference = ReferenceImplementation(graph, graph.nodes()[1].id, wide, device);
  EXPECT_TRUE(reference.As<RowPanelParameters>().column_tiles);

  std::vector<const FusionCode*> all;
  for (const FusionCode& code : codes) all.push_back(&code);
  auto module = HostModule::Compile(all);
  ASSERT_TRUE(module.ok()) << module.status();
  auto value = [&](const std::string& name) {
    for (const Value& v : graph.values())
      if (v.name == name) return v.id.value;
    return -1;
  };
  for (const SizeValues& sizes :
       {wide, SizeValues{{"m", 33}, {"n", 4097}}, SizeValues{{"m", 300}, {"n", 4096}},
        SizeValues{{"m", 1}, {"n", 1}}, SizeValues{{"m", 3}, {"n", 0}}, SizeValues{{"m", 0}, {"n", 9001}}}) {
    Values inputs;
    RandomInputs(graph, sizes, 11, &inputs);
    const int64_t m = sizes.at("m"), n = sizes.at("n");
    std::vector<double> x(n, 0), s(n, 0);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const double b = inputs[value("A")][i * n + j] + inputs[value("u")][i] * inputs[value("v")][j];
        x[j] += inputs[value("beta")][0] * b * inputs[value("y")][i];
        s[j] += b;
      }
    for (const FusionCode& code : codes) {
      Values values = inputs;
      auto run =
          RunOnHost(graph, sizes, **module, {&code}, 3, false, graph.inputs(), graph.outputs(), &values);
      ASSERT_TRUE(run.ok()) << run;
      const std::string at = absl::StrCat(m, " x ", n);
      EXPECT_LE(RelativeError(values[value("x")], x), 2e-4) << at;
      EXPECT_LE(RelativeError(values[value("s")], s), 2e-4) << at;
    }
  }
}

}  // namespace
}  // namespace fusion::testing
