// Products of elements: every implementation that the search offers, of products alone and of what several
// threads compute one after the other, gives what the unfused f64 reference gives. Every way to share an
// element occurs, with operands on chip and in place.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/implementation_choice.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/any_parameters.h"
#include "tests/property/codegen/lists_of_elements.h"

namespace fusion::testing {
namespace {

struct ProductCase {
  std::string name, text;
  std::vector<std::string> routines;  // that must occur in place
};

void PrintTo(const ProductCase& test, std::ostream* out) { *out << test.name; }

std::string Product(const std::string& a, const std::string& b, const std::string& c) {
  return absl::StrCat(a, " A;\n", b, " B;\n", c, " C;\ninput A, B;\nC = mmul(A, B);\nreturn C;\n");
}

class ProductsTest : public ::testing::TestWithParam<ProductCase> {};

TEST_P(ProductsTest, EveryImplementationAgreesWithTheReference) {
  const ProductCase& test = GetParam();
  v1::GraphSource source;
  source.set_fuse(test.text);
  const auto parsed = ParseSource(source, *Catalog::BuiltIn());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Graph& graph = **parsed;
  SearchOptions options;
  options.implementation.keep = 1000;
  const auto space =
      SearchFusions(graph, {{kElementsSize, 301}}, CostModel(DescribedDevice(v1::CUDA)), options);
  ASSERT_TRUE(space.ok()) << space.status();

  // Tiles and grids of the same structure are the same text with other numbers: one block of each is enough.
  std::vector<const FusionImplementation*> chosen;
  std::set<std::string> structures;
  for (const FusionImplementation& implementation : space->implementations) {
    const AnyParameters p = ParametersOf(implementation);
    if (structures
            .insert(absl::StrCat(absl::StrJoin(implementation.fusion.nodes.Members(), ","), "/",
                                 absl::StrJoin(ParametersOf(implementation).choices, ","), "/",
                                 static_cast<int>(p.load_path), p.blocks_per_multiprocessor == 0,
                                 p.elements_per_block == 1))
            .second)
      chosen.push_back(&implementation);
  }
  for (const std::string& routine : test.routines)
    EXPECT_TRUE(std::any_of(chosen.begin(), chosen.end(),
                            [&](const FusionImplementation* implementation) {
                              return ReadsInPlace(*implementation) &&
                                     absl::StrContains(Describe(graph, *implementation), routine);
                            }))
        << routine << " in place is missing";
  ExpectListsAgree(graph, chosen, {0, 1, 31});
}

INSTANTIATE_TEST_SUITE_P(
    All, ProductsTest,
    ::testing::Values(
        ProductCase{"f32_4", Product("MATRIX4x4", "MATRIX4x4", "MATRIX4x4"), {"mmul_entry", "mmul_quad"}},
        ProductCase{
            "f64_4", Product("f64 MATRIX4x4", "f64 MATRIX4x4", "f64 MATRIX4x4"), {"mmul_entry", "mmul_quad"}},
        ProductCase{"f32_7", Product("MATRIX7x7", "MATRIX7x7", "MATRIX7x7"), {"mmul_entry", "mmul_quad"}},
        ProductCase{
            "f32_4x8x16", Product("MATRIX4x8", "MATRIX8x16", "MATRIX4x16"), {"mmul_tile", "mmul_quad"}},
        ProductCase{"f64_16",
                    Product("f64 MATRIX16x16", "f64 MATRIX16x16", "f64 MATRIX16x16"),
                    {"mmul_tile", "mmul_warp"}},
        // Nothing is a multiple of what routines read at once, or only a part of it is.
        ProductCase{"f64_9x5x11",
                    Product("f64 MATRIX9x5", "f64 MATRIX5x11", "f64 MATRIX9x11"),
                    {"mmul_entry", "mmul_warp"}},
        ProductCase{"f64_10x6x10",
                    Product("f64 MATRIX10x6", "f64 MATRIX6x10", "f64 MATRIX10x10"),
                    {"mmul_entry", "mmul_warp"}},
        ProductCase{
            "f32_3x4x20", Product("MATRIX3x4", "MATRIX4x20", "MATRIX3x20"), {"mmul_tile", "mmul_quad"}},
        // The product stays on chip, the sum is written in place; D is read where it is.
        ProductCase{"f32_sum",
                    "MATRIX5x8 A, C, D, E;\nMATRIX8x8 B;\ninput A, B, D;\nC = mmul(A, B);\nE = madd(C, "
                    "D);\nreturn E;\n",
                    {"mmul_quad,madd_entry", "mmul_entry,madd_entry"}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusion::testing
