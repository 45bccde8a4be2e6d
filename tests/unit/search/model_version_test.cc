// What is learned of predictions holds for the model that made them.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>

#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/target/target.h"
#include "tests/example_source.h"

namespace fusion {
namespace {

// Predicted seconds of all nodes by themselves and of the best fusion of most nodes.
std::pair<double, double> Predicted(const std::string& example, const CostModel& model, int64_t size) {
  auto graph = ParseSource(testing::ExampleSource(example), *Catalog::BuiltIn());
  EXPECT_TRUE(graph.ok()) << graph.status();
  SizeValues sizes;
  for (const Size& named : (*graph)->sizes()) sizes[named.name] = size;
  auto space = SearchFusions(**graph, sizes, model, SearchOptions());
  EXPECT_TRUE(space.ok()) << space.status();
  double unfused = 0, fused = 0;
  for (int position : space->unfused) unfused += space->implementations[position].estimate.total_seconds;
  size_t most = 0;
  for (const FusionImplementation& implementation : space->implementations)
    if (implementation.order.size() > most)
      most = implementation.order.size(), fused = implementation.estimate.total_seconds;
  return {unfused, fused};
}

// Predicted seconds of all implementations together, those that are not among the best too.
double PredictedOfAll(const std::string& example, int64_t size) {
  auto graph = ParseSource(testing::ExampleSource(example), *Catalog::BuiltIn());
  EXPECT_TRUE(graph.ok()) << graph.status();
  SizeValues sizes;
  for (const Size& named : (*graph)->sizes()) sizes[named.name] = size;
  SearchOptions options;
  options.implementation.keep = 1000;
  auto space = SearchFusions(**graph, sizes, CostModel(DescribedDevice(v1::CUDA, "sm_90")), options);
  EXPECT_TRUE(space.ok()) << space.status();
  double seconds = 0;
  for (const FusionImplementation& implementation : space->implementations)
    seconds += implementation.estimate.total_seconds;
  return seconds;
}

TEST(ModelVersion, IsRaisedWhenPredictionsChange) {
  constexpr char kAdvice[] =
      "predictions have changed: raise kCostModelVersion, then put the new figures here";
  EXPECT_EQ(kCostModelVersion, 17) << "put the new figures here";
  const auto expect_of = [&](const std::string& example, const CostModel& model, double unfused, double fused,
                             int64_t size) {
    const auto [now_unfused, now_fused] = Predicted(example, model, size);
    EXPECT_NEAR(now_unfused / unfused, 1, 1e-4) << example << ": " << now_unfused << "; " << kAdvice;
    EXPECT_NEAR(now_fused / fused, 1, 1e-4) << example << ": " << now_fused << "; " << kAdvice;
  };
  // On a described H100.
  const auto expect = [&](const std::string& example, double warm_bytes, double unfused, double fused,
                          int64_t size = 2048) {
    expect_of(example, CostModel(DescribedDevice(v1::CUDA, "sm_90"), warm_bytes), unfused, fused, size);
  };
  expect("axpydot", 0, 8.566739e-06, 3.14640e-06);
  expect("function1", 0, 2.104740e-05, 4.152635e-06);
  expect("atax", 0, 1.961776e-05, 1.158098e-05);
  expect("softmax", 0, 5.72508e-05, 1.36848e-05);
  expect("gemver", 0, 4.700104e-05, 1.919898e-05);
  expect("cg_step", 34e6, 2.788167e-05, 1.285740e-05);
  expect("atax", 0, 2.415056e-05, 1.418576e-05, 2047);  // loaded entry by entry
  expect("sgemvt", 0, 1.901386e-4, 1.770926e-4, 8192);  // a matrix larger than the L2 cache
  for (const auto& [example, size, seconds] :
       {std::tuple{"atax", 4095, 0.0499835026}, {"softmax", 8192, 0.342036005}, {"bicgk", 8192, 0.110415755}})
    EXPECT_NEAR(PredictedOfAll(example, size) / seconds, 1, 1e-4)
        << example << ": " << PredictedOfAll(example, size) << "; " << kAdvice;
  const CostModel host(DescribedDevice(v1::HOST));
  expect_of("softmax", host, 0.010870622, 0.006463864, 2048);
  expect_of("function1", host, 1.926750e-4, 1.385653e-4, 2048);
  expect_of("adam_step", host, 5.673149e-3, 2.488816e-3, 1 << 20);
}

}  // namespace
}  // namespace fusion
