#include "tests/unit/parse/source.h"

namespace fusion {
namespace {

using testing::Errors;
using testing::Given;
using testing::ParseText;

std::shared_ptr<const Graph> Matrices() {
  auto graph =
      ParseText("size rows, columns = 5001;\nmatrix[rows,columns] A, B;\ninput A;\nB = neg(A);\nreturn B;\n");
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *graph;
}

TEST(ResolveSizes, GivenValuesBeforeDefaults) {
  auto sizes = ResolveSizes(*Matrices(), Given({{"rows", 4093}}), "f.fuse");
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_EQ(*sizes, (SizeValues{{"columns", 5001}, {"rows", 4093}}));
  sizes = ResolveSizes(*Matrices(), Given({{"rows", 1}, {"columns", 2}}), "f.fuse");
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_EQ(*sizes, (SizeValues{{"columns", 2}, {"rows", 1}}));
}

TEST(ResolveSizes, ZeroIsAllowed) {
  auto sizes = ResolveSizes(*Matrices(), Given({{"rows", 0}}), "f.fuse");
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_EQ(Matrices()->FloorBytes(*sizes), 0);
}

TEST(ResolveSizes, Elements) {
  auto graph = ParseText("VECTOR3 x, y;\ninput x;\ny = neg(x);\nreturn y;\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(*ResolveSizes(**graph, Given({}), ""), (SizeValues{{"elements", 31744}}));
  EXPECT_EQ(*ResolveSizes(**graph, Given({{"elements", 7}}), ""), (SizeValues{{"elements", 7}}));
  auto declared = ParseText("size elements = 99;\nVECTOR3 x, y;\ninput x;\ny = neg(x);\nreturn y;\n");
  ASSERT_TRUE(declared.ok()) << declared.status();
  EXPECT_EQ(*ResolveSizes(**declared, Given({}), ""), (SizeValues{{"elements", 99}}));
}

TEST(ResolveSizes, Missing) {
  EXPECT_EQ(Errors(ResolveSizes(*Matrices(), Given({}), "f.fuse")),
            "f.fuse: error: size rows has no value; give --size rows=V, or a default in the file: size rows "
            "= 1000000;");
}

TEST(ResolveSizes, Unknown) {
  EXPECT_EQ(
      Errors(ResolveSizes(*Matrices(), Given({{"rows", 2}, {"colums", 3}, {"q", 3}}), "f.fuse")),
      "f.fuse: error: the graph has no size colums (did you mean columns?); its sizes are rows, columns\n"
      "f.fuse: error: the graph has no size q; its sizes are rows, columns");
  auto graph = ParseText("scalar x, y;\ninput x;\ny = neg(x);\nreturn y;\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Errors(ResolveSizes(**graph, Given({{"n", 3}}), "")),
            "<submission>: error: the graph has no size n; it has no sizes");
}

TEST(ResolveSizes, OutOfRange) {
  EXPECT_EQ(Errors(ResolveSizes(*Matrices(), Given({{"rows", -1}, {"columns", INT64_MAX}}), "f.fuse")),
            "f.fuse: error: size rows must be from 0 to 2^62, but it is -1\n"
            "f.fuse: error: size columns must be from 0 to 2^62, but it is 9223372036854775807");
}

TEST(ResolveSizes, LeadingDimensionsHoldTheColumns) {
  auto graph = testing::ParseText(
      "size n = 8, lda = 9;\nmatrix[n,n,ld=lda] A, B;\ninput A;\nB = neg(A);\nreturn B;\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(ResolveSizes(**graph, Given({{"n", 9}}), "f.fuse").ok());
  EXPECT_EQ(Errors(ResolveSizes(**graph, Given({{"n", 10}}), "f.fuse")),
            "f.fuse:2:20: error: A: the leading dimension lda = 9 is less than the columns n = 10\n"
            "f.fuse:2:23: error: B: the leading dimension lda = 9 is less than the columns n = 10");
  EXPECT_EQ(Errors(ResolveSizes(**graph, Given({{"lda", int64_t{1} << 60}}), "f.fuse")),
            "f.fuse:2:20: error: A (matrix[n,n,ld=lda]) has more than 2^62 bytes at these sizes\n"
            "f.fuse:2:23: error: B (matrix[n,n,ld=lda]) has more than 2^62 bytes at these sizes");
}

TEST(ResolveSizes, VariablesMustFit) {
  const int64_t large = int64_t{1} << 30;
  EXPECT_TRUE(
      ResolveSizes(*Matrices(), Given({{"rows", large}, {"columns", large}}), "f.fuse").ok());  // 2^62 bytes
  EXPECT_EQ(Errors(ResolveSizes(*Matrices(), Given({{"rows", large}, {"columns", large + 1}}), "f.fuse")),
            "f.fuse:2:22: error: A (matrix[rows,columns]) has more than 2^62 bytes at these sizes\n"
            "f.fuse:2:25: error: B (matrix[rows,columns]) has more than 2^62 bytes at these sizes");
  EXPECT_TRUE(ResolveSizes(*Matrices(), Given({{"rows", 0}, {"columns", int64_t{1} << 62}}), "f.fuse").ok());
}

}  // namespace
}  // namespace fusion
