// What host kernels compute beside the bytes they move.
#include "server/skeletons/shared/host_costs.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/example_source.h"

namespace fusion {
namespace {

// The least predicted time of a kernel of exactly these results, on a described host.
class HostPrediction {
 public:
  HostPrediction(const std::string& example, int64_t size) {
    auto graph = ParseSource(testing::ExampleSource(example), *Catalog::BuiltIn());
    EXPECT_TRUE(graph.ok()) << graph.status();
    graph_ = *graph;
    SizeValues sizes;
    for (const Size& named : graph_->sizes()) sizes[named.name] = size;
    auto space = SearchFusions(*graph_, sizes, CostModel(DescribedDevice(v1::HOST)), SearchOptions());
    EXPECT_TRUE(space.ok()) << space.status();
    space_ = *std::move(space);
  }
  double Seconds(const std::string& results) const {
    double least = 0;
    for (const FusionImplementation& kernel : space_.implementations)
      if (Describe(*graph_, kernel).rfind("{" + results + "}", 0) == 0)
        least = least == 0 ? kernel.estimate.total_seconds : std::min(least, kernel.estimate.total_seconds);
    EXPECT_GT(least, 0) << "no kernel of " << results;
    return least;
  }

 private:
  std::shared_ptr<const Graph> graph_;
  SearchSpace space_;
};

TEST(HostCosts, MathematicalFunctionsAreManyOperations) {
  const std::shared_ptr<const Catalog> library = Catalog::BuiltIn().value();
  const auto operations = [&](const char* function, double flops) {
    return HostEntryOperations(TargetOf(v1::HOST).profile(), *library->Find(function), flops);
  };
  EXPECT_GT(operations("exp", 1), 5 * operations("add", 1));
  EXPECT_GT(operations("erf", 1), operations("exp", 1));
  EXPECT_EQ(operations("add", 2), 2 * operations("add", 1));
}

// A kernel that does a whole row keeps the exponentials of softmax from their sum to the results.
TEST(HostCosts, DearResultsThatTwoPassesNeedAreComputedOnce) {
  const HostPrediction softmax("softmax", 4096);
  EXPECT_LT(softmax.Seconds("largest D E total Y"),
            softmax.Seconds("largest D E total") + softmax.Seconds("Y"));
  const HostPrediction norm("layer_norm", 4096);
  EXPECT_LT(norm.Seconds("mean D Q variance shifted r N G Y"),
            norm.Seconds("mean D Q variance") + norm.Seconds("shifted r N G Y"));
}

}  // namespace
}  // namespace fusion
