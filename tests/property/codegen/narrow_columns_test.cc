// Reductions of the columns of narrow matrices: kernels agree with the unfused f64 reference at every number
// of columns that a block's lanes may meet, whether vectors are aligned with rows or not, and with few rows.
#include "server/skeletons/narrow_columns/narrow_columns.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/any_parameters.h"
#include "tests/example_source.h"
#include "tests/property/codegen/host_execution.h"

namespace fusion::testing {
namespace {

std::vector<FusionImplementation> NarrowKernels(const Graph& graph, int64_t rows, int64_t columns) {
  SearchOptions options;
  options.implementation.keep = 1000;
  auto space =
      SearchFusions(graph, {{"m", rows}, {"n", columns}}, CostModel(DescribedDevice(v1::CUDA)), options);
  EXPECT_TRUE(space.ok()) << space.status();
  std::vector<FusionImplementation> chosen;
  for (const FusionImplementation& implementation : space->implementations)
    if (implementation.fusion.nodes.Size() == graph.node_count() &&
        implementation.skeleton == &NarrowColumnsSkeleton())
      chosen.push_back(implementation);
  return chosen;
}

void ExpectTheReferenceOfNarrowColumns(const std::string& text) {
  auto parsed = ParseSource(TextSource(text), *Catalog::BuiltIn());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Graph& graph = **parsed;
  std::vector<FusionCode> codes;
  std::vector<std::string> descriptions;
  std::set<std::pair<int, int>> shapes;
  for (const FusionImplementation& implementation : NarrowKernels(graph, 1 << 20, 32)) {
    const AnyParameters p = ParametersOf(implementation);
    if (!shapes.emplace(p.vector_width, p.unroll).second) continue;
    auto code = LowerFusion(graph, implementation, {.simt = true});
    ASSERT_TRUE(code.ok()) << code.status();
    codes.push_back(*std::move(code));
    descriptions.push_back(Describe(graph, implementation));
  }
  EXPECT_GE(shapes.size(), 4u);
  const auto compared = ComparedCodes::Compile(graph, {{"m", 1 << 20}, {"n", 32}}, codes);
  ASSERT_TRUE(compared.ok()) << compared.status();
  for (const int64_t columns : {1, 2, 3, 4, 7, 8, 31, 32, 33, 63, 64, 100})
    for (const int64_t rows : {0, 1, 5, 777, 20011}) {
      const SizeValues sizes = {{"m", rows}, {"n", columns}};
      Values inputs;
      RandomInputs(graph, sizes, 11, &inputs);
      Values expected = inputs;
      auto status = (*compared)->RunReference(sizes, graph.outputs(), &expected);
      ASSERT_TRUE(status.ok()) << status;
      for (size_t c = 0; c < codes.size(); ++c) {
        Values values = inputs;
        auto run = RunOnHost(graph, sizes, (*compared)->module(), {&codes[c]}, 3, false, graph.inputs(),
                             graph.outputs(), &values);
        ASSERT_TRUE(run.ok()) << run << descriptions[c];
        for (ValueId id : graph.outputs())
          EXPECT_LE(RelativeError(values[id.value], expected[id.value]), 2e-4)
              << graph.value(id).name << ", " << rows << " x " << columns << ": " << descriptions[c];
      }
    }
}

TEST(NarrowColumns, StatisticsOfOneMatrix) {
  ExpectTheReferenceOfNarrowColumns(
      "size m, n; matrix[m,n] A; vector[n] s, q, lo, hi; input A; s = colmean(A); q = colnrm2(A);"
      "lo = colmin(A); hi = colmax(A); return s, q, lo, hi;");
}

TEST(NarrowColumns, MapsBeforeAndAfterTheReductions) {
  ExpectTheReferenceOfNarrowColumns(
      "size m, n; matrix[m,n] A, B, C, D; vector[n] v, s, t; scalar a; input A, B, v, a; C = colmul(A, v);"
      "D = madd(C, B); s = colsum(D); t = scal(a, s); return s, t;");
}

TEST(NarrowColumns, InDoublePrecision) {
  ExpectTheReferenceOfNarrowColumns(
      "size m, n; f64 matrix[m,n] A; f64 vector[n] s, hi; input A; s = colsum(A); hi = colmax(A); return s, "
      "hi;");
}

TEST(NarrowColumns, WideAndShortMatricesAreLeftToRows) {
  auto graph =
      ParseSource(TextSource("size m, n; matrix[m,n] A; vector[n] s; input A; s = colsum(A); return s;"),
                  *Catalog::BuiltIn());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_FALSE(NarrowKernels(**graph, 1 << 20, 64).empty());
  EXPECT_TRUE(NarrowKernels(**graph, 1 << 20, 65).empty());
  EXPECT_TRUE(NarrowKernels(**graph, 1000, 64).empty());
}

}  // namespace
}  // namespace fusion::testing
