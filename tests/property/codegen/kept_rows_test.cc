// Rows that stay on chip from sweep to sweep: three sweeps over one matrix give what plain sums give, however many steps a block
// makes.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "tests/property/codegen/host_execution.h"

namespace fusion::testing {
namespace {

// x = A'y, w = A'x, v = A'w: each needs all of the one before.
constexpr char kSource[] = R"(
size n = 2048;
matrix[n,n] A;  vector[n] x, v, y, w;
input A, y;
x = gemtv(1.0, A, y);
w = gemtv(1.0, A, x);
v = gemtv(1.0, A, w);
return x, w, v;
)";

TEST(KeptRows, ThreeSweepsOverOneMatrixReadTheirOwnRows) {
  v1::GraphSource source;
  source.set_fuse(kSource);
  auto parsed = ParseSource(source, *Catalog::BuiltIn());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Graph& graph = **parsed;
  SearchOptions options;
  options.implementation.keep = 1000;
  auto space = SearchFusions(graph, {{"n", 2048}}, CostModel(DescribedDevice(v1::CUDA)), options);
  ASSERT_TRUE(space.ok()) << space.status();

  // The fusion of all nodes; of those that keep rows, two of each kind.
  std::vector<FusionCode> codes;
  std::vector<std::string> descriptions;
  int seen[2][2] = {};
  for (const FusionImplementation& implementation : space->implementations) {
    if (implementation.fusion.nodes.Size() != graph.node_count() || implementation.sweeps.size() != 3) continue;
    const KeptRows& kept = implementation.sweeps[0].kept;
    if (kept.rows == 0 || ++seen[kept.in_registers][implementation.parameters.atomic] > 2) continue;
    auto code = LowerFusion(graph, implementation, {.cuda = true});
    ASSERT_TRUE(code.ok()) << code.status() << implementation.Describe(graph);
    codes.push_back(*std::move(code));
    descriptions.push_back(implementation.Describe(graph));
  }
  for (const auto& of_storage : seen)
    for (int count : of_storage) EXPECT_GE(count, 1);

  std::vector<const FusionCode*> all;
  for (const FusionCode& code : codes) all.push_back(&code);
  auto module = HostModule::Compile(all);
  ASSERT_TRUE(module.ok()) << module.status();
  auto value = [&](const std::string& name) {
    for (const Value& v : graph.values())
      if (v.name == name) return v.id.value;
    return -1;
  };
  // With three blocks: one step, several with and without a ragged end.
  for (const int64_t n : {3, 40, 131, 192, 517}) {
    const SizeValues sizes = {{"n", n}};
    Values inputs;
    RandomInputs(graph, sizes, 5, &inputs);
    const std::vector<double>& A = inputs[value("A")];
    auto product = [&](const std::vector<double>& by) {
      std::vector<double> sums(n, 0);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) sums[j] += A[i * n + j] * by[i];
      return sums;
    };
    const std::vector<double> x = product(inputs[value("y")]), w = product(x), v = product(w);
    for (size_t c = 0; c < codes.size(); ++c) {
      Values values = inputs;
      auto run = RunOnHost(graph, sizes, **module, {&codes[c]}, 3, false, graph.inputs(), graph.outputs(), &values);
      ASSERT_TRUE(run.ok()) << run;
      const std::string at = absl::StrCat("n = ", n, ": ", descriptions[c]);
      EXPECT_LE(RelativeError(values[value("x")], x), 2e-4) << at;
      EXPECT_LE(RelativeError(values[value("w")], w), 2e-4) << at;
      EXPECT_LE(RelativeError(values[value("v")], v), 2e-4) << at;
    }
  }
}

}  // namespace
}  // namespace fusion::testing
