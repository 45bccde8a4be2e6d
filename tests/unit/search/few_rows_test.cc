// Matrices of few and very long rows keep all multiprocessors busy.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/target/target.h"
#include "tests/example_source.h"

namespace fusion {
namespace {

// What kernels of single nodes take together, over what their loads and stores take at the rate of memory.
double OverBytes(const std::string& example, int64_t rows, int64_t columns) {
  auto graph = ParseSource(testing::ExampleSource(example), *Catalog::BuiltIn());
  EXPECT_TRUE(graph.ok()) << graph.status();
  const SizeValues sizes = {{"m", rows}, {"n", columns}};
  const CostModel model(DescribedDevice(v1::CUDA, "sm_90"));
  auto space = SearchFusions(**graph, sizes, model, SearchOptions());
  EXPECT_TRUE(space.ok()) << space.status();
  double predicted = 0, least = 0;
  for (int position : space->unfused) {
    const FusionImplementation& implementation = space->implementations[position];
    double bytes = 0;
    for (const auto* values : {&implementation.loads, &implementation.stores})
      for (ValueId value : *values) bytes += (*graph)->value(value).type.Bytes(sizes);
    predicted += implementation.estimate.total_seconds;
    least += model.LeastSeconds(bytes);
  }
  return predicted / least;
}

TEST(FewRows, AreReadAtTheRateOfMemory) {
  for (const char* example : {"sgemv", "softmax", "layer_norm", "rms_norm", "atax", "bicgk", "gemver"})
    for (const auto& [rows, columns] : {std::tuple{1, 1 << 26}, {4, 1 << 24}, {16, 1 << 22}, {100, 1 << 20}})
      EXPECT_LE(OverBytes(example, rows, columns), 1.3) << example << " " << rows << " x " << columns;
}

TEST(FewRows, NoneAtAllHaveTimesToo) {
  for (const char* example : {"sgemv", "softmax", "layer_norm", "rms_norm", "atax", "bicgk", "gemver"}) {
    for (const auto& [rows, columns] : {std::tuple{0, 257}, {257, 0}, {0, 0}}) {
      auto graph = ParseSource(testing::ExampleSource(example), *Catalog::BuiltIn());
      ASSERT_TRUE(graph.ok()) << graph.status();
      auto space = SearchFusions(**graph, {{"m", rows}, {"n", columns}},
                                 CostModel(DescribedDevice(v1::CUDA, "sm_90")), SearchOptions());
      ASSERT_TRUE(space.ok()) << space.status();
      for (const FusionImplementation& implementation : space->implementations) {
        EXPECT_TRUE(std::isfinite(implementation.estimate.total_seconds))
            << example << " " << rows << " x " << columns;
        EXPECT_GT(implementation.estimate.total_seconds, 0);
      }
    }
  }
}

TEST(FewRows, RowsThatFillNoWarpAreToo) {
  for (const char* example : {"sgemv", "softmax", "layer_norm", "rms_norm"})
    for (int64_t columns : {4, 8, 16, 32, 64})
      EXPECT_LE(OverBytes(example, 1 << 22, columns), 1.15) << example << " " << columns;
}

}  // namespace
}  // namespace fusion
