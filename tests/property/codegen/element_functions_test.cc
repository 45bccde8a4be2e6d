// Every function of elements that the library has, of every size that it permits: a kernel fits each
// architecture. What kernels of large elements compute is what the unfused f64 reference computes.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/implementation_choice.h"
#include "server/search/search.h"
#include "server/skeletons/element/element.h"
#include "server/target/target.h"
#include "tests/example_source.h"
#include "tests/property/codegen/lists_of_elements.h"

namespace fusion::testing {
namespace {

constexpr int kLargest = 32;

// "f64 MATRIX3x4" for a pattern MATRIX<r,c>.
std::string TypeText(const std::string& prefix, const TypePattern& pattern, const Overload& overload,
                     const StaticParameters& parameters) {
  if (pattern.kind == TypePattern::Kind::kCollection) return prefix + "scalar";
  std::vector<std::string> shape;
  for (const std::string& extent : pattern.shape) {
    const auto named =
        std::find(overload.static_parameters.begin(), overload.static_parameters.end(), extent);
    shape.push_back(named == overload.static_parameters.end()
                        ? extent
                        : absl::StrCat(parameters[named - overload.static_parameters.begin()]));
  }
  const char* const kinds[] = {"SCALAR", "VECTOR", "MATRIX"};
  return absl::StrCat(prefix, kinds[shape.size()], absl::StrJoin(shape, "x"));
}

// A graph of one function: c = f(a0, a1).
std::string CallText(const ElementaryFunction& function, const Overload& overload,
                     const StaticParameters& parameters, const std::string& prefix) {
  std::string text;
  std::vector<std::string> names;
  for (const Operand& operand : overload.operands) {
    names.push_back(absl::StrCat("a", names.size()));
    absl::StrAppend(&text, TypeText(prefix, operand.pattern, overload, parameters), " ", names.back(), ";\n");
  }
  const std::string list = absl::StrJoin(names, ", ");
  return absl::StrCat(text, TypeText(prefix, overload.result, overload, parameters), " c;\ninput ", list,
                      ";\nc = ", function.name, "(", list, ");\nreturn c;\n");
}

// The static parameters to try: all the same, and all but the first, or the second, small and large.
std::vector<StaticParameters> ParametersOfOverload(const Overload& overload) {
  std::set<StaticParameters> all;
  for (const int size : {1, 2, 3, 4, 7, 8, 15, 16, 17, 24, 31, 32})
    for (const int other : {size, 1, kLargest})
      for (const size_t first : {0, 1}) {
        StaticParameters parameters(overload.static_parameters.size(), other);
        if (first < parameters.size()) parameters[first] = size;
        const auto permitted =
            EvaluateConstraint(overload.constraint, overload.static_parameters, parameters);
        EXPECT_TRUE(permitted.ok()) << permitted.status();
        if (permitted.ok() && *permitted) all.insert(parameters);
      }
  return {all.begin(), all.end()};
}

TEST(ElementFunctions, AKernelFitsEveryArchitecture) {
  const auto catalog = *Catalog::BuiltIn();
  int searched = 0;
  for (const ElementaryFunction* function : catalog->functions())
    for (const Overload& overload : function->overloads) {
      if (overload.form != v1::ELEMENT) continue;
      for (const StaticParameters& parameters : ParametersOfOverload(overload))
        for (const std::string prefix : {"", "f64 "}) {
          const std::string text = CallText(*function, overload, parameters, prefix);
          const auto graph = ParseSource(TextSource(text), catalog);
          ASSERT_TRUE(graph.ok()) << graph.status() << text;
          for (const std::string arch : {"sm_75", "sm_86", "sm_90"}) {
            const auto space = SearchFusions(**graph, {{kElementsSize, 301}},
                                             CostModel(DescribedDevice(v1::CUDA, arch)), SearchOptions());
            EXPECT_TRUE(space.ok()) << arch << " " << space.status() << "\n" << text;
            searched += space.ok() && !space->implementations.empty();
          }
        }
    }
  EXPECT_GT(searched, 1000);
}

struct LargeCase {
  std::string name, text, arch;
};

void PrintTo(const LargeCase& test, std::ostream* out) { *out << test.name; }

class LargeElementsTest : public ::testing::TestWithParam<LargeCase> {};

TEST_P(LargeElementsTest, EveryImplementationAgreesWithTheReference) {
  const LargeCase& test = GetParam();
  const auto parsed = ParseSource(TextSource(test.text), *Catalog::BuiltIn());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Graph& graph = **parsed;
  SearchOptions options;
  options.implementation.keep = 100;
  const auto space =
      SearchFusions(graph, {{kElementsSize, 301}}, CostModel(DescribedDevice(v1::CUDA, test.arch)), options);
  ASSERT_TRUE(space.ok()) << space.status();
  std::vector<const FusionImplementation*> chosen;
  std::set<std::string> structures;
  for (const FusionImplementation& implementation : space->implementations) {
    const auto& p = implementation.As<ElementParameters>();
    // Tiles of the same structure are the same text with other numbers.
    if (structures
            .insert(absl::StrCat(absl::StrJoin(implementation.fusion.nodes.Members(), ","), "/",
                                 absl::StrJoin(p.choices, ","), "/", static_cast<int>(p.load_path),
                                 p.elements_per_block < p.threads))
            .second)
      chosen.push_back(&implementation);
  }
  ExpectListsAgree(graph, chosen, {0, 1, 31, 33});
}

std::string Trace(const std::string& type) {
  return absl::StrCat(type, " A;\n", type[0] == 'f' ? "f64 " : "",
                      "SCALAR s;\ninput A;\ns = mtrace(A);\nreturn s;\n");
}
INSTANTIATE_TEST_SUITE_P(
    All, LargeElementsTest,
    ::testing::Values(LargeCase{"trace_f32_31_sm_90", Trace("MATRIX31x31"), "sm_90"},
                      LargeCase{"trace_f32_32_sm_75", Trace("MATRIX32x32"), "sm_75"},
                      LargeCase{"trace_f64_24_sm_90", Trace("f64 MATRIX24x24"), "sm_90"},
                      LargeCase{"trace_f64_31_sm_75", Trace("f64 MATRIX31x31"), "sm_75"},
                      LargeCase{"trace_f64_32_sm_75", Trace("f64 MATRIX32x32"), "sm_75"},
                      LargeCase{"trace_of_sum_f64_12_sm_75",
                                "f64 MATRIX12x12 A, B, C;\nf64 SCALAR s;\ninput A, B;\nC = madd(A, B);\n"
                                "s = mtrace(C);\nreturn s, C;\n",
                                "sm_75"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fusion::testing
