// No compiler makes one multiply-add of a product and a sum of a graph, whatever options it is given: what is
// exactly 0 when each is rounded by itself is 0 in every kernel.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/example_source.h"
#include "tests/property/codegen/host_execution.h"

namespace fusion::testing {
namespace {

// Each result is 0 where u is x, v is y and b is a.
std::string Zeros(bool f64) {
  const std::string text = R"(
size n; vector[n] x, y, u, v, p, q, d, s, h, i, f, j, k, g; scalar a, b;
input x, y, u, v, a, b;
p = mul(x, y);    q = mul(u, v);   d = sub(p, q);  s = sqrt(d);
h = scale(a, x);  i = scal(b, u);  f = vsub(h, i);
j = exp(x);       k = exp(u);      g = sub(j, k);
return s, f, g;
)";
  if (!f64) return text;
  return absl::StrReplaceAll(text, {{"vector[", "f64 vector["}, {"scalar ", "f64 scalar "}});
}

void ExpectZeros(bool f64, const std::string& command) {
  auto parsed = ParseSource(TextSource(Zeros(f64)), *Catalog::BuiltIn());
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  const Graph& graph = **parsed;
  const SizeValues sizes = {{"n", 1003}};
  SearchOptions options;
  options.implementation.keep = 2;
  auto space = SearchFusions(graph, sizes, CostModel(DescribedDevice(v1::HOST)), options);
  ASSERT_TRUE(space.ok()) << space.status();
  std::vector<FusionCode> codes;
  std::vector<FusionImplementation> implementations;
  for (const FusionImplementation& implementation : space->implementations) {
    if (implementation.fusion.nodes.Size() < graph.node_count()) continue;
    auto code = LowerFusion(graph, implementation, {.simt = false});
    ASSERT_TRUE(code.ok()) << code.status();
    codes.push_back(*std::move(code));
    implementations.push_back(implementation);
  }
  ASSERT_FALSE(codes.empty());
  std::vector<const FusionCode*> all;
  for (const FusionCode& code : codes) all.push_back(&code);
  auto module = HostModule::Compile(all, {.command = command});
  ASSERT_TRUE(module.ok()) << module.status();
  std::mt19937 generator(2);
  std::normal_distribution<float> normal;
  std::map<std::string, std::vector<double>> named = {{"a", {0.7}}, {"b", {0.7}}};
  for (const char* name : {"x", "y"})
    for (int i = 0; i < 1003; ++i) named[name].push_back(f64 ? normal(generator) / 3.0 : normal(generator));
  named["u"] = named["x"], named["v"] = named["y"];
  for (const FusionCode& code : codes) {
    Values values;
    for (ValueId id : graph.inputs()) values[id.value] = named.at(graph.value(id).name);
    const auto run =
        RunOnHost(graph, sizes, **module, {&code}, 2, false, graph.inputs(), graph.outputs(), &values);
    ASSERT_TRUE(run.ok()) << run;
    for (ValueId id : graph.outputs())
      for (double entry : values[id.value]) ASSERT_EQ(entry, 0) << graph.value(id).name << ": " << command;
  }
}

bool Has(const std::string& program) {
  return std::system(absl::StrCat("command -v ", program, " > /dev/null 2>&1").c_str()) == 0;
}

TEST(Contraction, GccMakesNoMultiplyAddsOfAGraph) {
  for (const bool f64 : {false, true})
    for (const char* options : {"-O2", "-O3 -march=native", "-O3 -march=native -ffp-contract=fast"})
      ExpectZeros(f64, absl::StrCat("g++ ", options));
}

TEST(Contraction, ClangMakesNoMultiplyAddsOfAGraph) {
  if (!Has("clang++")) GTEST_SKIP() << "clang++ is not installed";
  for (const bool f64 : {false, true})
    for (const char* options : {"-O2 -march=native", "-O3 -march=native -ffp-contract=fast"})
      ExpectZeros(f64, absl::StrCat("clang++ ", options));
}

}  // namespace
}  // namespace fusion::testing
