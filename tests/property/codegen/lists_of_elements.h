// Kernels over lists of elements, lowered for CUDA, against the unfused f64 reference of their graph.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "server/plan/plan.h"
#include "server/skeletons/skeletons.h"
#include "tests/property/codegen/host_execution.h"

namespace fusion::testing {

// Each of `chosen` gives what the reference gives, of random lists of 301 elements and of so many.
inline void ExpectListsAgree(const Graph& graph, const std::vector<const FusionImplementation*>& chosen,
                             std::vector<int64_t> lengths) {
  std::vector<FusionCode> codes;
  for (const FusionImplementation* implementation : chosen) {
    auto code = LowerFusion(graph, *implementation, {.simt = true});
    ASSERT_TRUE(code.ok()) << code.status() << Describe(graph, *implementation);
    codes.push_back(*std::move(code));
  }
  ASSERT_FALSE(codes.empty());
  const auto compared = ComparedCodes::Compile(graph, {{kElementsSize, 301}}, codes);
  ASSERT_TRUE(compared.ok()) << compared.status();
  std::vector<ValueId> produced;
  for (const Node& node : graph.nodes()) produced.push_back(node.result);
  lengths.push_back(301);
  for (const int64_t elements : lengths) {
    const SizeValues sizes = {{kElementsSize, elements}};
    Values expected;
    RandomInputs(graph, sizes, 7, &expected);
    ASSERT_TRUE((*compared)->RunReference(sizes, produced, &expected).ok());
    for (size_t i = 0; i < codes.size(); ++i) {
      Values values = expected;
      const auto run = RunOnHost(graph, sizes, (*compared)->module(), {&codes[i]}, 3, false, chosen[i]->loads,
                                 chosen[i]->stores, &values);
      ASSERT_TRUE(run.ok()) << run << " " << Describe(graph, *chosen[i]);
      for (ValueId id : chosen[i]->stores)
        EXPECT_LE(RelativeError(values[id.value], expected[id.value]), 2e-5)
            << Describe(graph, *chosen[i]) << " of " << elements;
    }
  }
}

}  // namespace fusion::testing
