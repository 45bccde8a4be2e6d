// What is learned of predictions holds for the model that made them.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "server/model/architecture.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "tests/example_source.h"

namespace fusion {
namespace {

// Predicted seconds of all nodes by themselves and of the best fusion of most nodes, on a described H100.
std::pair<double, double> Predicted(const std::string& example, double warm_bytes, int64_t size) {
  auto graph = ParseSource(testing::ExampleSource(example), *Catalog::BuiltIn());
  EXPECT_TRUE(graph.ok()) << graph.status();
  SizeValues sizes;
  for (const Size& named : (*graph)->sizes()) sizes[named.name] = size;
  auto space =
      SearchFusions(**graph, sizes, CostModel(DescribedCudaDevice("sm_90"), warm_bytes), SearchOptions());
  EXPECT_TRUE(space.ok()) << space.status();
  double unfused = 0, fused = 0;
  for (int position : space->unfused) unfused += space->implementations[position].estimate.total_seconds;
  size_t most = 0;
  for (const FusionImplementation& implementation : space->implementations)
    if (implementation.order.size() > most)
      most = implementation.order.size(), fused = implementation.estimate.total_seconds;
  return {unfused, fused};
}

TEST(ModelVersion, IsRaisedWhenPredictionsChange) {
  constexpr char kAdvice[] =
      "predictions have changed: raise kCostModelVersion, then put the new figures here";
  EXPECT_EQ(kCostModelVersion, 10) << "put the new figures here";
  const auto expect = [&](const std::string& example, double warm_bytes, double unfused, double fused,
                          int64_t size = 2048) {
    const auto [now_unfused, now_fused] = Predicted(example, warm_bytes, size);
    EXPECT_NEAR(now_unfused / unfused, 1, 1e-4) << example << ": " << now_unfused << "; " << kAdvice;
    EXPECT_NEAR(now_fused / fused, 1, 1e-4) << example << ": " << now_fused << "; " << kAdvice;
  };
  expect("axpydot", 0, 8.553837e-06, 3.14640e-06);
  expect("function1", 0, 2.104740e-05, 4.152635e-06);
  expect("atax", 0, 1.8493e-05, 1.04562e-05);
  expect("softmax", 0, 5.72508e-05, 1.36848e-05);
  expect("gemver", 0, 4.58763e-05, 1.82979e-05);
  expect("cg_step", 34e6, 2.788167e-05, 1.285740e-05);
  expect("atax", 0, 2.45159e-05, 1.34580e-05, 2047);  // loaded entry by entry
}

}  // namespace
}  // namespace fusion
