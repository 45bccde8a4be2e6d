// Kernels that repeat loads or computation to be timed: the same results as the reference, and the repeated
// part really in a loop.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/codegen/source.h"
#include "server/parse/parse.h"
#include "server/skeletons/element/routine_times.h"
#include "server/skeletons/skeletons.h"
#include "tests/any_parameters.h"
#include "tests/example_source.h"
#include "tests/property/codegen/host_execution.h"

namespace fusion::testing {
namespace {

void CheckSourceOf(const RoutineSource& source, bool cuda) {
  v1::GraphSource text;
  text.set_fuse(source.text);
  auto parsed = ParseSource(text, *Catalog::BuiltIn());
  ASSERT_TRUE(parsed.ok()) << parsed.status() << source.text;
  const Graph& graph = **parsed;
  const SizeValues sizes = {{kElementsSize, 2048}};
  const CostModel model(DescribedDevice(cuda ? v1::CUDA : v1::HOST));
  std::vector<FusionCode> codes;
  std::vector<std::string> names;
  for (const RoutineKernel& kernel : RoutineKernels(graph, sizes, model, source.transfers))
    // Also more often than there are elements.
    for (int repeats : {1, 3, 2500}) {
      const bool again = repeats > 1;
      FusionImplementation implementation = kernel.implementation;
      auto& parameters = implementation.As<ElementParameters>();
      if (again) (source.transfers ? parameters.load_repeats : parameters.compute_repeats) = repeats;
      auto code = LowerFusion(graph, implementation, {.simt = cuda});
      ASSERT_TRUE(code.ok()) << code.status();
      EXPECT_EQ(PrintSource(*code, TargetOf(v1::CUDA), false).find("again") != std::string::npos, again)
          << kernel.routine;
      codes.push_back(*std::move(code));
      names.push_back(kernel.routine);
    }
  ASSERT_FALSE(codes.empty()) << source.text;
  const auto compared = ComparedCodes::Compile(graph, sizes, codes);
  ASSERT_TRUE(compared.ok()) << compared.status();
  Values inputs;
  RandomInputs(graph, sizes, 11, &inputs);
  Values expected = inputs;
  auto status = (*compared)->RunReference(sizes, graph.outputs(), &expected);
  ASSERT_TRUE(status.ok()) << status;
  for (size_t c = 0; c < codes.size(); ++c) {
    Values values = inputs;
    auto run = RunOnHost(graph, sizes, (*compared)->module(), {&codes[c]}, 3, false, graph.inputs(),
                         graph.outputs(), &values);
    ASSERT_TRUE(run.ok()) << run << names[c];
    for (ValueId id : graph.outputs())
      EXPECT_LE(RelativeError(values[id.value], expected[id.value]), 2e-5) << names[c];
  }
}

TEST(RoutineKernels, GiveTheSameResultsHoweverOftenTheyRepeat) {
  auto parsed = ParseSource(ExampleSource("function1"), *Catalog::BuiltIn());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const std::vector<RoutineSource> sources = RoutineSourcesOf(**parsed);
  // mmul33, mvmul33, venorm3, mmul55, madd55, smmul55; and lists of MATRIX3x3, VECTOR3, SCALAR, MATRIX5x5.
  EXPECT_EQ(sources.size(), 10u);
  for (const RoutineSource& source : sources) CheckSourceOf(source, true);
  CheckSourceOf(sources.front(), false);
}

}  // namespace
}  // namespace fusion::testing
