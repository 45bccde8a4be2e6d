// What no kernel can compute on a device: an error that says which node, which limit and what the device has.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "server/model/cost_model.h"
#include "server/parse/parse.h"
#include "server/search/search.h"
#include "server/target/target.h"
#include "tests/example_source.h"

namespace fusion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The answer of the search for a graph with a function that comes with it.
absl::Status Searched(const std::string& function, const std::string& text, const std::string& arch) {
  v1::FunctionDefinition definition;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(function, &definition));
  const auto catalog = (*Catalog::BuiltIn())->WithInline({definition});
  EXPECT_TRUE(catalog.ok()) << catalog.status();
  const auto graph = ParseSource(testing::TextSource(text), *catalog);
  EXPECT_TRUE(graph.ok()) << graph.status();
  SizeValues sizes;
  for (const Size& size : (*graph)->sizes()) sizes[size.name] = 100;
  return SearchFusions(**graph, sizes, CostModel(DescribedDevice(v1::CUDA, arch)), SearchOptions()).status();
}

// By one thread, of so many matrices of 32 x 32 f64 (8208 bytes each in shared memory).
struct Sum {
  std::string function, text;
};
Sum SumOf(int operands, int operations) {
  std::string declared, parameters, names;
  for (int i = 0; i < operands; ++i) {
    absl::StrAppend(&declared, "operands { name: \"A", i, "\" type: \"MATRIX<n,n>\" } ");
    absl::StrAppend(&parameters, "const T* a", i, ", ");
    absl::StrAppend(&names, i > 0 ? ", " : "", "a", i);
  }
  return {absl::StrCat(
              "name: \"firsts\" domain: \"elements\" documentation: \"First entries.\" overloads { form: "
              "ELEMENT ",
              declared,
              "result: \"SCALAR\" formula: \"s\" static_parameters: \"n\" implementations { granularity: "
              "THREAD threads: ONE routine: \"firsts_thread\" } flops: \"",
              operations, "\" } source: \"template <class T, int n> FUSION_FN void firsts_thread(",
              parameters, "T* r) { r[0] = a0[0]; }\""),
          absl::StrCat("f64 MATRIX32x32 ", names, ";\nf64 SCALAR s;\ninput ", names, ";\ns = firsts(", names,
                       ");\nreturn s;\n")};
}

absl::Status Searched(const Sum& sum, const std::string& arch) {
  return Searched(sum.function, sum.text, arch);
}

// An element does not fit into registers (by far) nor into shared memory (nearly): the second is what
// matters.
TEST(NoKernel, SaysWhichLimitAnElementExceedsLeastAndWhatTheDeviceHas) {
  EXPECT_TRUE(Searched(SumOf(3, 1), "sm_75").ok());
  EXPECT_TRUE(Searched(SumOf(8, 1), "sm_90").ok());
  const absl::Status status = Searched(SumOf(8, 1), "sm_75");
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("s = firsts(...)"), HasSubstr("T4"),
                    HasSubstr("a tile of 2 elements needs 131344 bytes"),
                    HasSubstr("shared memory; the device has 65536"), Not(HasSubstr("registers"))));
  const absl::Status larger = Searched(SumOf(13, 1), "sm_86");
  EXPECT_TRUE(absl::IsInvalidArgument(larger)) << larger;
  EXPECT_THAT(std::string(larger.message()),
              AllOf(HasSubstr("s = firsts(...)"), HasSubstr("A10"),
                    HasSubstr("shared memory; the device has 101376"), Not(HasSubstr("registers"))));
}

TEST(NoKernel, SaysHowManyOperationsAThreadMayDo) {
  const absl::Status status = Searched(SumOf(1, 30001), "sm_90");
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("s = firsts(...)"), HasSubstr("30001 operations"),
                    HasSubstr("limit for unrolled code is 20000")));
}

// A row panel as well: of many ways to hold a row, that which needs the least. The last one that is tried
// needs more.
TEST(NoKernel, SaysWhichLimitARowExceedsLeast) {
  const auto graph = ParseSource(testing::ExampleSource("sgemv"), *Catalog::BuiltIn());
  ASSERT_TRUE(graph.ok()) << graph.status();
  DeviceDescription device = DescribedDevice(v1::CUDA, "sm_90");
  device.set_shared_bytes_per_block(1000);
  const absl::Status status =
      SearchFusions(**graph, {{"m", 64}, {"n", 5000}}, CostModel(device), SearchOptions()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("rows of 5000 columns need 1024 bytes of shared memory; the device has 1000"));
}

// No size of any device helps here.
TEST(NoKernel, SaysWhyNoSkeletonComputesAFunction) {
  const absl::Status status = Searched(
      R"(name: "forces" domain: "blas2" documentation: "Between all pairs."
         overloads {
           form: REDUCE dimensions { name: "i" kind: PARALLEL } dimensions { name: "j" kind: REDUCTION }
           operands { name: "x" type: "vector[i]" } operands { name: "y" type: "vector[j]" }
           result: "vector[i]" formula: "f_i = sum_j x_i * y_j" monoid: SUM term_routine: "forces_term"
           term_operands: "x" term_operands: "y" flops: "2" }
         source: "template <class T> FUSION_FN T forces_term(T x, T y) { return x * y; }")",
      "size n;\nvector[n] x, y, f;\ninput x, y;\nf = forces(x, y);\nreturn f;\n", "sm_90");
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("f = forces(...)"), HasSubstr("f has no matrix that fixes rows and columns")));
}

}  // namespace
}  // namespace fusion
