// Vectors in the registers of one block: chains of reductions and maps agree with the unfused f64 reference,
// up to the last length that the block holds, at ragged lengths and at none.
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

// Of all nodes in one kernel, as they are chosen for `length` entries.
std::vector<FusionImplementation> InOneBlock(const Graph& graph, int64_t length) {
  SearchOptions options;
  options.implementation.keep = 1000;
  auto space = SearchFusions(graph, {{"n", length}}, CostModel(DescribedDevice(v1::CUDA)), options);
  EXPECT_TRUE(space.ok()) << space.status();
  std::vector<FusionImplementation> chosen;
  for (const FusionImplementation& implementation : space->implementations)
    if (implementation.fusion.nodes.Size() == graph.node_count() &&
        implementation.skeleton == &BlockVectorSkeleton())
      chosen.push_back(implementation);
  return chosen;
}

void ExpectTheReferenceInOneBlock(const std::string& text) {
  auto parsed = ParseSource(TextSource(text), *Catalog::BuiltIn());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Graph& graph = **parsed;
  std::vector<FusionCode> codes;
  std::vector<std::string> descriptions;
  std::set<int> chunks;
  for (const int64_t length : {1500, 6000})
    for (const FusionImplementation& implementation : InOneBlock(graph, length)) {
      auto code = LowerFusion(graph, implementation, {.simt = true});
      ASSERT_TRUE(code.ok()) << code.status();
      ASSERT_EQ(code->launches.size(), 1u) << Describe(graph, implementation);
      ASSERT_EQ(code->limits.size(), 1u);
      EXPECT_GE(code->limits[0].limit, length) << Describe(graph, implementation);
      chunks.insert(ParametersOf(implementation).chunks);
      codes.push_back(*std::move(code));
      descriptions.push_back(Describe(graph, implementation));
    }
  EXPECT_GE(chunks.size(), 3u);
  const auto compared = ComparedCodes::Compile(graph, {{"n", 1500}}, codes);
  ASSERT_TRUE(compared.ok()) << compared.status();
  std::set<int64_t> lengths = {0, 1, 2, 31, 33, 1000, 1500, 2047, 6000};
  for (const FusionCode& code : codes) lengths.insert(code.limits[0].limit);
  for (const int64_t n : lengths) {
    const SizeValues sizes = {{"n", n}};
    Values inputs;
    RandomInputs(graph, sizes, 11, &inputs);
    Values expected = inputs;
    auto status = (*compared)->RunReference(sizes, graph.outputs(), &expected);
    ASSERT_TRUE(status.ok()) << status;
    for (size_t c = 0; c < codes.size(); ++c) {
      if (n > codes[c].limits[0].limit) continue;
      Values values = inputs;
      auto run = RunOnHost(graph, sizes, (*compared)->module(), {&codes[c]}, 3, false, graph.inputs(),
                           graph.outputs(), &values);
      ASSERT_TRUE(run.ok()) << run << descriptions[c];
      for (ValueId id : graph.outputs())
        EXPECT_LE(RelativeError(values[id.value], expected[id.value]), 2e-4)
            << graph.value(id).name << ", n = " << n << ": " << descriptions[c];
    }
  }
}

TEST(BlockVectors, AReductionIsUsedByLaterMapsAndReductions) {
  ExpectTheReferenceInOneBlock(
      "size n = 1500; vector[n] x, y, s, t, u, v; scalar a, d, e, f; input x, y, a; d = dot(x, y); e = "
      "mul(a, d);"
      "s = axpy(e, x, y); f = nrm2(s); t = scal(f, s); u = vadd(t, x); v = scal(d, u); return d, s, f, t, "
      "v;");
}

TEST(BlockVectors, SeveralReductionsAreCompleteAtOnce) {
  ExpectTheReferenceInOneBlock(
      "size n = 1500; vector[n] x, y, z; scalar big, small, range, total; input x, y; big = vmax(x); small = "
      "vmin(x);"
      "range = sub(big, small); total = asum(y); z = axpby(range, x, total, y); return z, total;");
}

TEST(BlockVectors, OfF64) {
  ExpectTheReferenceInOneBlock(
      "size n = 1500; f64 vector[n] x, y; f64 scalar s, t; input x; s = nrm2(x); y = scal(s, x); t = sum(y);"
      "return y, t;");
}

TEST(BlockVectors, LongOnesAreLeftToTheGrid) {
  // Few values, so that registers would hold more.
  auto graph = ParseSource(TextSource("size n; vector[n] x; scalar s; input x; s = nrm2(x); return s;"),
                           *Catalog::BuiltIn());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_FALSE(InOneBlock(**graph, 16384).empty());
  EXPECT_TRUE(InOneBlock(**graph, 16385).empty());
}

}  // namespace
}  // namespace fusion::testing
