// Every implementation of every fusion of every example computes what the unfused f64 reference computes, at
// ragged and at tiny sizes; lowered for the host and for CUDA (the latter run through the host printer: one
// IR, two printers).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "server/parse/parse.h"
#include "tests/example_source.h"
#include "tests/folders.h"
#include "tests/property/codegen/every_implementation.h"

namespace fusion::testing {
namespace {

std::vector<std::string> Examples() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(testing::SourceFolder() + "/examples"))
    if (entry.path().extension() == ".fuse") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::shared_ptr<const Graph> Load(const std::string& name) {
  auto graph = ParseSource(ExampleSource(name), *Catalog::BuiltIn());
  EXPECT_TRUE(graph.ok()) << graph.status();
  return graph.ok() ? *graph : nullptr;
}

class ExampleTest : public ::testing::TestWithParam<std::tuple<std::string, v1::Target>> {};

TEST_P(ExampleTest, EveryFusionImplementationAgreesWithTheReference) {
  const auto& [name, target] = GetParam();
  auto graph = Load(name);
  ASSERT_NE(graph, nullptr);
  ExpectEveryImplementationIsRight(*graph, name, target);
}

INSTANTIATE_TEST_SUITE_P(All, ExampleTest,
                         ::testing::Combine(::testing::ValuesIn(Examples()),
                                            ::testing::Values(v1::HOST, v1::CUDA)),
                         [](const auto& info) {
                           return absl::StrCat(std::get<0>(info.param),
                                               std::get<1>(info.param) == v1::CUDA ? "_cuda" : "_host");
                         });

}  // namespace
}  // namespace fusion::testing
