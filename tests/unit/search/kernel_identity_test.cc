#include "server/search/kernel_identity.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/skeletons/skeletons.h"
#include "tests/example_source.h"
#include "tests/unit/search/parsed_text.h"

namespace fusion {
namespace {

using testing::ParsedText;

// What all nodes of the graph together are called.
KernelIdentity Identity(const std::string& text, const SizeValues& sizes) {
  const auto graph = ParsedText(text);
  NodeSet nodes(graph->node_count());
  for (const Node& node : graph->nodes()) nodes.Add(node.id.value);
  return KernelNames(*graph, sizes).Of(nodes);
}

constexpr char kAxpy[] =
    "size n = 8; vector[n] x, y, z; scalar a; input a, x, y; z = axpy(a, x, y); return z;";

TEST(KernelNames, AreTheSameInEveryGraphThatHasTheKernel) {
  const KernelIdentity plain = Identity(kAxpy, {{"n", 8}});
  EXPECT_EQ(plain.sizes, "8");
  EXPECT_EQ(plain,
            Identity("size k = 8; vector[k] u, v, w; scalar s; input s, u, v; w = axpy(s, u, v); return w;",
                     {{"k", 8}}));
  EXPECT_EQ(plain.family, Identity(kAxpy, {{"n", 9}}).family);
  EXPECT_EQ(Identity(kAxpy, {{"n", 9}}).sizes, "9");
  // As part of a larger graph.
  const auto larger = ParsedText(
      "size n = 8; vector[n] x, y, z, t; scalar a; input a, x, y; z = axpy(a, x, y); t = vadd(z, z); return "
      "t;");
  NodeSet first(larger->node_count());
  first.Add(0);
  EXPECT_EQ(KernelNames(*larger, {{"n", 8}}).Of(first), plain);
}

TEST(KernelNames, DifferWhereTheWorkDoes) {
  const std::vector<std::string> texts = {
      kAxpy,
      "size n = 8; f64 vector[n] x, y, z; f64 scalar a; input a, x, y; z = axpy(a, x, y); return z;",
      "size n = 8; vector[n] x, z; scalar a; input a, x; z = axpy(a, x, x); return z;",
      "size n = 8; vector[n] x, y, z; input x, y; z = axpy(2.0, x, y); return z;",
      "size n = 8; vector[n] x, y, z; input x, y; z = vadd(x, y); return z;",
      "size n = 8; vector[n] x, y, z; input x, y; z = vsub(x, y); return z;",
      "size n = 8; vector[n] x, y, z, t; scalar a; input a, x, y; z = axpy(a, x, y); t = vadd(z, y); return "
      "t;",
      "size n = 8; vector[n] x, y, z, t; scalar a; input a, x, y; z = axpy(a, x, y); t = vadd(z, y); return "
      "z, t;"};
  std::set<std::string> families;
  for (const std::string& text : texts) families.insert(Identity(text, {{"n", 8}}).family);
  EXPECT_EQ(families.size(), texts.size());
}

TEST(KernelNames, ASquareMatrixIsAnotherFamilyThanOneOfTwoSizes) {
  const std::string square =
      "size n = 8; matrix[n,n] A; vector[n] x, y; input A, x; y = gemv(1.0, A, x); return y;";
  const std::string wide =
      "size m = 8, n = 8; matrix[m,n] A; vector[n] x; vector[m] y; input A, x; y = gemv(1.0, A, x); return "
      "y;";
  EXPECT_NE(Identity(square, {{"n", 8}}).family, Identity(wide, {{"m", 8}, {"n", 8}}).family);
  EXPECT_EQ(Identity(wide, {{"m", 4}, {"n", 8}}).sizes, "4,8");
}

TEST(VariantOf, TellsAllImplementationsOfAFusionApart) {
  for (const char* example : {"softmax", "sgemvt", "bicgk", "gemver", "axpydot", "function1"}) {
    auto graph = ParseSource(testing::ExampleSource(example), *Catalog::BuiltIn());
    ASSERT_TRUE(graph.ok()) << graph.status();
    SizeValues sizes;
    for (const Size& size : (*graph)->sizes()) sizes[size.name] = 4096;
    SearchOptions options;
    options.implementation.keep = 1000;
    auto space = SearchFusions(**graph, sizes, CostModel(DescribedDevice(v1::CUDA)), options);
    ASSERT_TRUE(space.ok()) << space.status();
    const KernelNames names(**graph, sizes);
    std::map<KernelIdentity, std::string> seen;
    for (const FusionImplementation& implementation : space->implementations) {
      // Single nodes may be alike.
      if (implementation.fusion.nodes.Size() == 1) continue;
      const std::string description = Describe(**graph, implementation);
      const auto [it, is_new] = seen.try_emplace(names.Of(implementation), description);
      EXPECT_TRUE(is_new || it->second == description)
          << example << ": " << it->second << " and " << description;
    }
    EXPECT_GT(seen.size(), 20u) << example;
  }
}

// Every kernel was measured: those that were, are at their times, and the search finds the fastest.
class AllKnown final : public KernelMemory {
 public:
  explicit AllKnown(std::map<std::string, std::vector<RememberedKernel>> kernels)
      : kernels_(std::move(kernels)) {}
  std::vector<RememberedKernel> Find(const std::string& family) const override {
    const auto found = kernels_.find(family);
    return found == kernels_.end() ? std::vector<RememberedKernel>() : found->second;
  }
  std::vector<std::string> Families() const override {
    std::vector<std::string> families;
    for (const auto& [family, kernels] : kernels_) families.push_back(family);
    return families;
  }

 private:
  std::map<std::string, std::vector<RememberedKernel>> kernels_;
};

TEST(VariantOf, TellsLoadsOfOtherKernelsResultsFromThoseOfInputs) {
  const auto graph = ParsedText(
      "size n = 8; vector[n] x, y, z; scalar a; input a, x; y = scal(a, x); z = scal(a, y); return z;");
  const SizeValues sizes = {{"n", 8}};
  const KernelNames names(*graph, sizes);
  const auto space = SearchFusions(*graph, sizes, CostModel(DescribedDevice(v1::CUDA)), SearchOptions());
  ASSERT_TRUE(space.ok()) << space.status();
  FusionImplementation first = space->implementations[space->unfused[0]], second;
  for (const FusionImplementation& implementation : space->implementations)
    if (implementation.fusion.nodes.Members() == std::vector<int>{1} &&
        implementation.skeleton->Variant(implementation) == first.skeleton->Variant(first))
      second = implementation;
  ASSERT_EQ(second.fusion.nodes.Size(), 1);
  const KernelIdentity of_input = names.Of(first), of_result = names.Of(second);
  EXPECT_EQ(of_input.family, of_result.family);
  EXPECT_EQ(of_input.sizes, of_result.sizes);
  EXPECT_NE(of_input.variant, of_result.variant);
}

TEST(SearchFusions, RemembersMeasuredKernels) {
  auto graph = ParseSource(testing::ExampleSource("softmax"), *Catalog::BuiltIn());
  ASSERT_TRUE(graph.ok()) << graph.status();
  SizeValues sizes;
  for (const Size& size : (*graph)->sizes()) sizes[size.name] = 4096;
  const auto space = SearchFusions(**graph, sizes, CostModel(DescribedDevice(v1::CUDA)), SearchOptions());
  ASSERT_TRUE(space.ok()) << space.status();
  const KernelNames names(**graph, sizes);
  // Of the whole graph, the last predicted one took least.
  const FusionImplementation* slowest = nullptr;
  for (const FusionImplementation& implementation : space->implementations)
    if (implementation.fusion.nodes.Size() == (*graph)->node_count()) slowest = &implementation;
  ASSERT_NE(slowest, nullptr);
  const KernelIdentity identity = names.Of(*slowest);
  const auto memory = std::make_shared<const AllKnown>(std::map<std::string, std::vector<RememberedKernel>>{
      {identity.family,
       {{.sizes = identity.sizes,
         .variant = identity.variant,
         .seconds = 0.9 * slowest->estimate.total_seconds,
         .deviation = 0.01,
         .predicted_seconds = slowest->estimate.total_seconds,
         .features = FeaturesOf(*slowest)}}}});
  const auto again = SearchFusions(
      **graph, sizes, CostModel(DescribedDevice(v1::CUDA), 0, Residual(), RoutineTables(), memory),
      SearchOptions());
  ASSERT_TRUE(again.ok()) << again.status();
  int measured = 0;
  for (const FusionImplementation& implementation : again->implementations) {
    if (!implementation.estimate.measured) continue;
    ++measured;
    EXPECT_EQ(Describe(**graph, implementation), Describe(**graph, *slowest));
    EXPECT_NEAR(implementation.estimate.total_seconds, 0.9 * slowest->estimate.total_seconds,
                0.02 * slowest->estimate.total_seconds);
  }
  EXPECT_EQ(measured, 1);
}

}  // namespace
}  // namespace fusion
