// Kernels may begin before the one ahead of them is complete and wait for it inside. Compilers load through
// pointers that are const and restricted whenever they like, also before the wait: so only inputs of the
// graph, which no kernel writes, may be.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/example_source.h"

namespace fusion {
namespace {

TEST(RestrictedPointers, AreInputsOfTheGraphOrWrittenByTheKernel) {
  std::set<KernelArgument::Kind> seen;
  bool seen_computed = false;
  for (const char* example : {"cg_step", "gemver", "layer_norm", "axpydot", "function1", "atax"}) {
    auto parsed = ParseSource(testing::ExampleSource(example), *Catalog::BuiltIn());
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    const Graph& graph = **parsed;
    SizeValues sizes;
    for (const Size& size : graph.sizes()) sizes[size.name] = 4096;
    auto space = SearchFusions(graph, sizes, CostModel(DescribedDevice(v1::CUDA)), SearchOptions());
    ASSERT_TRUE(space.ok()) << space.status();
    for (const FusionImplementation& implementation : space->implementations) {
      auto code = LowerFusion(graph, implementation, {.simt = true});
      ASSERT_TRUE(code.ok()) << code.status();
      for (const KernelLaunch& launch : code->launches)
        for (const KernelArgument& argument : launch.arguments) {
          seen.insert(argument.kind);
          const bool restricted = argument.c_type.find("FUSION_RESTRICT") != std::string::npos;
          if (argument.kind == KernelArgument::Kind::kWorkspace) {
            EXPECT_FALSE(restricted) << Describe(graph, implementation);
          }
          if (argument.kind != KernelArgument::Kind::kPointer || argument.is_output) continue;
          seen_computed |= !graph.value(argument.value).is_input;
          EXPECT_EQ(restricted, graph.value(argument.value).is_input)
              << argument.name << " of " << Describe(graph, implementation);
        }
    }
  }
  EXPECT_TRUE(seen.count(KernelArgument::Kind::kWorkspace));
  EXPECT_TRUE(seen_computed);
}

}  // namespace
}  // namespace fusion
