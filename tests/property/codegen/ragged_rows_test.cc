// Rows that end within the last chunk of the lanes' registers: the code without guards for all chunks but
// that one gives the same results, at the planned width and at all others that the kernel takes.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/codegen/kernel_versions.h"
#include "server/codegen/source.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/any_parameters.h"
#include "tests/example_source.h"
#include "tests/property/codegen/host_execution.h"

namespace fusion::testing {
namespace {

// Row and column reductions of one matrix, what a row's result is used for on the same row, and a stored
// matrix.
constexpr char kRaggedSource[] = R"(
size m = 7, n = 1101;
matrix[m,n] A, B;  vector[m] u, q;  vector[n] v, p, s;
input A, u, v, p;
B = ger(A, u, v);
q = gemv(1.0, B, p);
s = gemtv(1.0, B, q);
return B, q, s;
)";

std::string PlannedFor(int64_t n) {
  std::string source = kRaggedSource;
  return source.replace(source.find("1101"), 4, absl::StrCat(n));
}

TEST(RaggedRows, ResultsAreThoseOfTheReference) {
  // 1101: no vector divides it. 1004: vectors of 16 bytes do, and no chunk of 32 lanes or more.
  for (const int64_t planned : {1101, 1004}) {
    auto parsed = ParseSource(TextSource(PlannedFor(planned)), *Catalog::BuiltIn());
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    const Graph& graph = **parsed;
    const SizeValues sizes = {{"m", 7}, {"n", planned}};
    SearchOptions options;
    options.implementation.keep = 400;
    auto space = SearchFusions(graph, sizes, CostModel(DescribedDevice(v1::CUDA)), options);
    ASSERT_TRUE(space.ok()) << space.status();
    std::vector<FusionCode> codes;
    std::vector<int64_t> filled;
    std::set<std::string> kinds;
    for (const FusionImplementation& implementation : space->implementations) {
      const AnyParameters p = ParametersOf(implementation);
      if (!p.ragged || implementation.fusion.nodes.Size() != graph.node_count()) continue;
      EXPECT_GT(p.chunks, 1);
      // Of each kind one, and no more than can be compiled soon.
      if (!kinds
               .insert(absl::StrCat(p.vector_width, p.stages > 0, p.rows_per_step > 1, p.hold_columns,
                                    p.threads_per_row == 32))
               .second)
        continue;
      auto code = LowerFusion(graph, implementation, {.simt = true});
      ASSERT_TRUE(code.ok()) << code.status() << Describe(graph, implementation);
      filled.push_back(int64_t{p.chunks - 1} * p.threads_per_row * p.vector_width);
      ASSERT_EQ(code->limits.size(), 1u);
      EXPECT_LE(filled.back(), planned);
      EXPECT_LT(planned, code->limits[0].limit);
      EXPECT_TRUE(absl::StrContains(PrintSource(*code, TargetOf(v1::CUDA), false),
                                    absl::StrCat("n_n >= ", filled.back())))
          << Describe(graph, implementation);
      codes.push_back(*std::move(code));
    }
    ASSERT_GE(codes.size(), 4u) << planned;
    auto compared = ComparedCodes::Compile(graph, sizes, codes);
    ASSERT_TRUE(compared.ok()) << compared.status();
    int whole = 0, guarded = 0;  // runs
    for (size_t i = 0; i < codes.size(); ++i) {
      for (const int64_t n : {planned, filled[i], filled[i] + 1, filled[i] - 1, codes[i].limits[0].limit,
                              codes[i].limits[0].limit - 1, int64_t{1}, int64_t{0}}) {
        for (const int64_t m : {7, 1}) {
          const SizeValues now = {{"m", m}, {"n", n}};
          ++(LaunchesWhole(codes[i].launches[0], now) ? whole : guarded);
          Values values;
          RandomInputs(graph, now, 5, &values);
          Values reference = values;
          ASSERT_TRUE((*compared)->RunReference(now, graph.outputs(), &reference).ok());
          auto run = RunOnHost(graph, now, (*compared)->module(), {&codes[i]}, 3, false, graph.inputs(),
                               graph.outputs(), &values);
          ASSERT_TRUE(run.ok()) << run << " at " << m << " x " << n;
          for (ValueId output : graph.outputs())
            EXPECT_LE(RelativeError(values[output.value], reference[output.value]), 2e-4)
                << graph.value(output).name << " at " << m << " x " << n << ", planned " << planned
                << ", filled " << filled[i];
        }
      }
    }
    EXPECT_GT(whole, 0);
    EXPECT_GT(guarded, 0);
  }
}

TEST(RaggedRows, RowsThatFillAllChunksKeepTheirCode) {
  auto parsed = ParseSource(TextSource(PlannedFor(1024)), *Catalog::BuiltIn());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  auto space = SearchFusions(**parsed, {{"m", 7}, {"n", 1024}}, CostModel(DescribedDevice(v1::CUDA)), {});
  ASSERT_TRUE(space.ok()) << space.status();
  int chunked = 0;
  for (const FusionImplementation& implementation : space->implementations) {
    if (ParametersOf(implementation).chunks == 0) continue;
    ++chunked;
    EXPECT_FALSE(ParametersOf(implementation).ragged) << Describe(**parsed, implementation);
  }
  EXPECT_GT(chunked, 0);
}

}  // namespace
}  // namespace fusion::testing
