// Names of values become names of parameters in C++ that includes standard headers.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "server/codegen/exported_launch.h"
#include "server/codegen/source.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/example_source.h"

namespace fusion {
namespace {

std::string NameOf(const std::string& name) {
  Value value;
  value.name = name;
  return ParameterName(value);
}

TEST(ParameterName, IsTheValuesWhereThatIsFree) {
  for (const char* name : {"A", "x", "M1", "Fx", "AtA", "alpha", "B2", "Errno"})
    EXPECT_EQ(NameOf(name), name);
}

TEST(ParameterName, KeywordsAndMacrosGetAnUnderscore) {
  for (const char* name :
       {"float", "main_", "stream", "restrict", "_Bool", "I", "cudaStream_t", "errno", "stderr", "EOF", "NAN",
        "NULL", "INFINITY", "M_PI", "INT_MAX", "FLT_EPSILON", "SIZE_MAX", "BUFSIZ", "linux"})
    EXPECT_EQ(NameOf(name), std::string(name) + "_");
}

TEST(ParameterName, OneLikeThatOfASizeIsNoneOfASize) {
  // n_m_ is that of a size m_.
  EXPECT_EQ(NameOf("n_m"), "v_n_m");
  EXPECT_EQ(NameOf("v_n_m"), "v_v_n_m");
  EXPECT_EQ(NameOf("v_x"), "v_x");
}

// An identifier of a value must not hide a routine: a function could be called "e", and e_map be its routine.
TEST(LoweringContext, NoIdentifierOfAValueEndsAsARoutineDoes) {
  auto graph = ParseSource(
      testing::TextSource("size n; vector[n] x, map, map_, y; input x; map = scal(2, x); map_ = scal(3, map);"
                          " y = scal(4, map_); return y;"),
      *Catalog::BuiltIn());
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto space = SearchFusions(**graph, {{"n", 4096}}, CostModel(DescribedDevice(v1::CUDA)), SearchOptions());
  ASSERT_TRUE(space.ok()) << space.status();
  int whole = 0;
  for (const FusionImplementation& implementation : space->implementations) {
    if (implementation.order.size() != 3) continue;
    ++whole;
    auto code = LowerFusion(**graph, implementation, {.simt = true});
    ASSERT_TRUE(code.ok()) << code.status();
    const std::string text = PrintSource(*code, TargetOf(v1::CUDA), false);
    EXPECT_NE(text.find(" e_map__ = scal_map<float>(float(2.0), r_x"), std::string::npos) << text;
    EXPECT_NE(text.find(" e_map_ = scal_map<float>(float(3.0), e_map__)"), std::string::npos) << text;
  }
  EXPECT_GT(whole, 0);
}

}  // namespace
}  // namespace fusion
