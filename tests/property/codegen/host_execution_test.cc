// The harness of this folder catches what it is for.
#include "tests/property/codegen/host_execution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/any_parameters.h"
#include "tests/example_source.h"

namespace fusion::testing {
namespace {

TEST(HostExecution, RelativeErrorSeesNaNAndMissingEntries) {
  EXPECT_EQ(RelativeError({1, 2}, {1, 2}), 0);
  EXPECT_TRUE(std::isinf(RelativeError({1, std::nan("")}, {1, 2})));
  EXPECT_TRUE(std::isinf(RelativeError({1}, {1, 2})));
  EXPECT_EQ(RelativeError({1, std::nan("")}, {1, std::nan("")}), 0);
  EXPECT_NEAR(RelativeError({1, 2.02}, {1, 2}), 0.01, 1e-6);
}

void Replace(const std::string& what, const std::string& by, std::vector<ir::Statement>* body) {
  for (ir::Statement& statement : *body) {
    absl::StrReplaceAll({{what, by}}, &statement.text);
    Replace(what, by, &statement.body);
  }
}

// What running `y = scal(a, x)` of 33 entries by vectors of four says, with buffers so many entries off and
// one text of the kernel replaced.
std::string RunWith(int entries_off, const std::string& what, const std::string& by) {
  auto parsed =
      ParseSource(TextSource("size n; vector[n] x, y; scalar a; input x, a; y = scal(a, x); return y;"),
                  *Catalog::BuiltIn());
  if (!parsed.ok()) return parsed.status().ToString();
  const Graph& graph = **parsed;
  auto space = SearchFusions(graph, {{"n", 1 << 20}}, CostModel(DescribedDevice(v1::CUDA)), {});
  if (!space.ok()) return space.status().ToString();
  for (const FusionImplementation& implementation : space->implementations) {
    if (implementation.skeleton != &VectorSkeleton() || ParametersOf(implementation).vector_width != 4)
      continue;
    auto code = LowerFusion(graph, implementation, {.simt = true});
    if (!code.ok()) return code.status().ToString();
    if (!what.empty()) Replace(what, by, &code->launches[0].kernel.sections[0].body);
    auto module = HostModule::Compile({&*code});
    if (!module.ok()) return module.status().ToString();
    Values values;
    RandomInputs(graph, {{"n", 33}}, 3, &values);
    return RunOnHost(graph, {{"n", 33}}, **module, {&*code}, 3, false, graph.inputs(), graph.outputs(),
                     &values, [entries_off](ValueId) { return entries_off; })
        .ToString();
  }
  return "no such kernel";
}

TEST(HostExecution, AccessesThatAnAddressDoesNotPermitAreSeen) {
  EXPECT_EQ(RunWith(0, "", ""), "OK");
  EXPECT_EQ(RunWith(1, "", ""), "OK");
  EXPECT_EQ(RunWith(0, "fu_aligned(", "true || fu_aligned("), "OK");
  EXPECT_TRUE(absl::StrContains(RunWith(1, "fu_aligned(", "true || fu_aligned("), "accesses at once"))
      << RunWith(1, "fu_aligned(", "true || fu_aligned(");
}

TEST(HostExecution, AnEntryBehindTheLastIsSeen) {
  for (const int entries_off : {0, 1})
    EXPECT_TRUE(
        absl::StrContains(RunWith(entries_off, "extent = n_n", "extent = n_n + 1"), "wrote outside of y"))
        << RunWith(entries_off, "extent = n_n", "extent = n_n + 1");
}

}  // namespace
}  // namespace fusion::testing
