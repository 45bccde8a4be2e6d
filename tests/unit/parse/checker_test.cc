#include "server/parse/checker.h"

#include "tests/unit/parse/source.h"

namespace fusion {
namespace {

using testing::ParseText;
using testing::TextErrors;

// Statements from line 3 on.
std::string WithCollections(const std::string& statements) {
  return "size m = 4, n = 5;\nmatrix[m,n] A;  vector[n] x, w;  vector[m] y, z;  scalar a;\n" + statements;
}

TEST(Checker, UnknownFunction) {
  EXPECT_EQ(TextErrors(WithCollections("input A, y;\nx = gemvt(1.0, A, y);\nreturn x;\n")),
            "f.fuse:4:5: error: unknown function gemvt (did you mean gemtv?)");
  EXPECT_EQ(TextErrors(WithCollections("input x;\nw = frobnicate(x);\nreturn w;\n")),
            "f.fuse:4:5: error: unknown function frobnicate; fusion-client library list shows all functions");
}

TEST(Checker, OperandTypes) {
  EXPECT_EQ(
      TextErrors(WithCollections("input A, y;\nx = gemv(1.0, A, y);\nreturn x;\n")),
      "f.fuse:4:5: error: gemv(a, A, x): x must be vector[n] because A is matrix[m,n], but it is vector[m]; "
      "here x is y");
  EXPECT_EQ(TextErrors("f64 SCALAR x;\nSCALAR y, z;\ninput x, y;\nz = add(x, y);\nreturn z;\n"),
            "f.fuse:4:5: error: add(x, y): y must be f64 because x is f64 SCALAR, but it is SCALAR");
  EXPECT_EQ(
      TextErrors("MATRIX3x3 A, B, C;\ninput A, B;\nC = mmul55(A, B);\nreturn C;\n"),
      "f.fuse:3:5: error: mmul(A, B): the sizes \"55\" in the name do not fit: A is MATRIX3x3; write mmul or "
      "mmul33");
}

TEST(Checker, ResultType) {
  EXPECT_EQ(TextErrors(WithCollections("input A, x;\nw = gemv(1.0, A, x);\nreturn w;\n")),
            "f.fuse:4:1: error: w is declared vector[n], but gemv gives vector[m]");
}

TEST(Checker, NumberOfArguments) {
  EXPECT_EQ(TextErrors(WithCollections("input A, x;\ny = gemv(A, x);\nreturn y;\n")),
            "f.fuse:4:5: error: the call has 2 operands; write gemv(a, A, x) or gemv(a, A, x, b, y)");
}

TEST(Checker, LiteralsMustFit) {
  EXPECT_EQ(TextErrors("SCALAR x, y;\ninput x;\ny = mul(1e39, x);\nreturn y;\n"),
            "f.fuse:3:9: error: this number is too large for f32; the largest is 3.4e38");
  EXPECT_TRUE(ParseText("f64 SCALAR x, y;\ninput x;\ny = mul(1e39, x);\nreturn y;\n").ok());
}

TEST(Checker, UndeclaredNames) {
  EXPECT_EQ(TextErrors("SCALAR alpha, y;\ninput alpha;\ny = neg(alhpa);\nreturn y;\n"),
            "f.fuse:3:9: error: alhpa is not declared (did you mean alpha?)");
  EXPECT_EQ(TextErrors("SCALAR s1, t1;\ninput s1;\nt1 = neg(S1);\nreturn t1;\n"),
            "f.fuse:3:10: error: S1 is not declared (did you mean s1?)");
  EXPECT_EQ(TextErrors("SCALAR x, y;\ninput x;\ny = add(x, q);\nreturn y;\n"),
            "f.fuse:3:12: error: q is not declared; declare it with its type");
  EXPECT_EQ(TextErrors("SCALAR x;\ninput x, p;\nreturn q;\n"),
            "f.fuse:2:7: error: input x is never used; use it or delete it from the inputs\n"
            "f.fuse:2:10: error: p is not declared; declare it with its type\n"
            "f.fuse:3:8: error: q is not declared; declare it with its type");
}

TEST(Checker, UndeclaredResultNamesItsType) {
  EXPECT_EQ(TextErrors(WithCollections("input A, x;\nresult = gemv(1.0, A, x);\nreturn result;\n")),
            "f.fuse:4:1: error: result is not declared; add: vector[m] result;");
}

TEST(Checker, UndeclaredIsReportedOnce) {
  EXPECT_EQ(TextErrors("SCALAR y, z;\ny = neg(q);\nz = exp(q);\nreturn y, z, q;\n"),
            "f.fuse:2:9: error: q is not declared; declare it with its type");
}

TEST(Checker, DeclaredTwice) {
  EXPECT_EQ(TextErrors("size n;\nvector[n] x, y;\nscalar x;\ninput x;\ny = neg(x);\nreturn y;\n"),
            "f.fuse:3:8: error: x is already declared at line 2");
  EXPECT_EQ(TextErrors("size n, n;\nvector[n] n, y;\nvector[n] x;\ninput x;\ny = neg(x);\nreturn y;\n"),
            "f.fuse:1:9: error: n is already declared as a size at line 1\n"
            "f.fuse:2:11: error: n is already declared as a size at line 1");
}

TEST(Checker, DeclaredTooLate) {
  EXPECT_EQ(TextErrors("input x;\ny = neg(x);\nSCALAR x, y;\nreturn y;\n"),
            "f.fuse:1:7: error: x is used before its declaration at line 3; move the declaration up\n"
            "f.fuse:2:1: error: y is used before its declaration at line 3; move the declaration up");
  EXPECT_EQ(TextErrors("vector[n] x, y;\nsize n;\ninput x;\ny = neg(x);\nreturn y;\n"),
            "f.fuse:1:8: error: size n is used before its declaration at line 2; move the declaration up");
}

TEST(Checker, LongNames) {
  const std::string longest(200, 'x');
  EXPECT_TRUE(
      ParseText("SCALAR x, " + longest + ";\ninput x;\n" + longest + " = neg(x);\nreturn " + longest + ";")
          .ok());
  EXPECT_EQ(TextErrors("SCALAR x, y, " + longest + "x;\ninput x;\ny = neg(x);\nreturn y;"),
            "f.fuse:1:14: error: the name " + std::string(57, 'x') +
                "... has 201 characters; at most 200 are allowed");
}

TEST(Checker, Sizes) {
  EXPECT_EQ(
      TextErrors(
          "size n = 0, k = -5, h = 4611686018427387905;\nvector[n] x, y;\ninput x;\ny = neg(x);\nreturn y;"),
      "f.fuse:1:17: error: size k must be from 0 to 2^62, but it is -5\n"
      "f.fuse:1:25: error: size h must be from 0 to 2^62, but it is 4611686018427387905")
      << "0 is a size, as on the command line";
  EXPECT_EQ(TextErrors("matrix[3000000000,3000000000] A, B;\nvector[0] v;\nvector[-1] w;\ninput A;\nB = "
                       "neg(A);\nreturn B;"),
            "f.fuse:1:19: error: matrix[3000000000,3000000000] has more than 2^62 bytes\n"
            "f.fuse:2:8: error: a size must be from 1 to 2^62, but it is 0\n"
            "f.fuse:3:8: error: a size must be from 1 to 2^62, but it is -1");
}

TEST(Checker, LeadingDimensions) {
  EXPECT_EQ(
      TextErrors(
          "size n;\nmatrix[n,20,ld=19] A;\nmatrix[n,n,ld=0] B;\nmatrix[n,n,ld=k] C;\nmatrix[n,n,ld=elements] "
          "D;\n"
          "matrix[3000000000,3,ld=3000000000] E;\nmatrix[n,n] F, G;\ninput F;\nG = neg(F);\nreturn G;\n"),
      "f.fuse:2:16: error: the leading dimension 19 is less than the columns 20\n"
      "f.fuse:3:15: error: a size must be from 1 to 2^62, but it is 0\n"
      "f.fuse:4:15: error: size k is not declared; add: size k;\n"
      "f.fuse:5:15: error: elements is the length of mapped lists (SCALAR, VECTORn, MATRIXrxc); give this "
      "collection a size "
      "of its own\n"
      "f.fuse:6:24: error: matrix[3000000000,3] has more than 2^62 bytes");
}

TEST(Checker, UndeclaredSizesAreReportedOnce) {
  EXPECT_EQ(
      TextErrors(
          "size rows;\nvector[row] x, y;\nvector[k] z;\nvector[k] u;\ninput x;\ny = neg(x);\nreturn y;\n"),
      "f.fuse:2:8: error: size row is not declared (did you mean rows?)\n"
      "f.fuse:3:8: error: size k is not declared; add: size k;");
}

TEST(Checker, SizesAreNoVariablesAndTheReverse) {
  EXPECT_EQ(TextErrors("size n;\nvector[n] x, y;\ninput x;\ny = vadd(x, n);\nreturn y;\n"),
            "f.fuse:4:13: error: n is a size, not a variable");
  EXPECT_EQ(TextErrors("scalar s;\nvector[s] x, y;\ninput x, s;\ny = scal(s, x);\nreturn y;\n"),
            "f.fuse:2:8: error: s is a variable, not a size");
}

TEST(Checker, ElementsIsReserved) {
  EXPECT_EQ(
      TextErrors("vector[elements] x, y;\nscalar elements;\ninput x;\ny = neg(x);\nreturn y;\n"),
      "f.fuse:1:8: error: elements is the length of mapped lists (SCALAR, VECTORn, MATRIXrxc); give this "
      "collection a size of its own\n"
      "f.fuse:2:8: error: elements is the length of mapped lists; choose another name");
}

TEST(Checker, UseBeforeDefinition) {
  EXPECT_EQ(TextErrors(WithCollections("input A, x;\nz = neg(y);\ny = gemv(1.0, A, x);\nreturn z;\n")),
            "f.fuse:4:9: error: y is used before it is computed at line 5; move its computation up");
  EXPECT_EQ(
      TextErrors(WithCollections("input A;\nz = gemv(1.0, A, x);\ny = gemv(2.0, A, x);\nreturn z, y;\n")),
      "f.fuse:4:18: error: x has no value: it is neither an input nor computed");
  EXPECT_EQ(TextErrors("SCALAR x, y, z;\ninput x;\ny = neg(x);\nreturn y, z;\n"),
            "f.fuse:4:11: error: z has no value: it is neither an input nor computed");
}

TEST(Checker, ComputedTwice) {
  EXPECT_EQ(TextErrors("SCALAR x, y;\ninput x;\ny = neg(x);\ny = exp(x);\nreturn y;\n"),
            "f.fuse:4:1: error: y is already computed at line 3; give it another name");
}

TEST(Checker, Inputs) {
  EXPECT_EQ(TextErrors("SCALAR x, y;\ninput x, x;\ny = neg(x);\nreturn y;\n"),
            "f.fuse:2:10: error: x is already an input at line 2");
  EXPECT_EQ(TextErrors("SCALAR x, y, z;\ninput x, y;\ny = neg(x);\nz = exp(y);\nreturn z;\n"),
            "f.fuse:3:1: error: y is an input (at line 2) and cannot be computed");
  EXPECT_EQ(TextErrors("SCALAR x, y, z;\ninput x, z;\ny = neg(x);\nreturn y;\n"),
            "f.fuse:2:10: error: input z is never used; use it or delete it from the inputs");
}

TEST(Checker, Outputs) {
  EXPECT_EQ(TextErrors("SCALAR x, y;\ninput x;\ny = neg(x);\nreturn y, x;\n"),
            "f.fuse:4:11: error: output x is an input; return only what is computed");
  EXPECT_EQ(TextErrors("SCALAR x, y;\ninput x;\ny = neg(x);\nreturn y, y;\n"),
            "f.fuse:4:11: error: y is returned twice");
  EXPECT_EQ(TextErrors("SCALAR x, y, z;\ninput x;\ny = neg(x);\nz = exp(y);\nreturn y;\n"),
            "f.fuse:4:1: error: z is computed but never used; return it or delete the line");
}

TEST(Checker, ManyErrorsAtOnceByPosition) {
  EXPECT_EQ(TextErrors("SCALAR x, y, z;\ninput x, y;\nz = ad(x, q);\nx = neg(z);\nreturn y, z, z\n"),
            "f.fuse:3:5: error: unknown function ad (did you mean add?)\n"
            "f.fuse:3:11: error: q is not declared; declare it with its type\n"
            "f.fuse:4:1: error: x is an input (at line 2) and cannot be computed\n"
            "f.fuse:5:8: error: output y is an input; return only what is computed\n"
            "f.fuse:5:14: error: z is returned twice\n"
            "f.fuse:5:15: error: missing ; at the end of this statement");
}

// A variable whose call failed has its declared type, so what uses it is checked and nothing is reported
// twice.
TEST(Checker, NoErrorsThatFollowFromOthers) {
  EXPECT_EQ(TextErrors(WithCollections(
                "input A, x;\ny = gemw(1.0, A, x);\nz = neg(y);\nw = neg(y);\nreturn z, w;\n")),
            "f.fuse:4:5: error: unknown function gemw (did you mean gemv?)\n"
            "f.fuse:6:1: error: w is declared vector[n], but neg gives vector[m]");
}

TEST(Checker, IndexMapsOfAGraph) {
  auto graph = ParseText(WithCollections("input A, y;\nx = gemtv(2, A, y);\nreturn x;\n"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Node& node = (*graph)->nodes()[0];
  EXPECT_EQ(node.dimensions,
            (std::vector<NodeDimension>{{Extent{"m"}, v1::REDUCTION}, {Extent{"n"}, v1::PARALLEL}}));
  EXPECT_EQ(node.operand_maps, (std::vector<std::vector<int>>{{}, {0, 1}, {0}}));
  EXPECT_EQ(node.result_map, (std::vector<int>{1}));
  EXPECT_TRUE(node.is_reduction());
  EXPECT_FALSE(node.mapped());
}

TEST(Checker, StaticParametersOfAGraph) {
  auto graph = ParseText("MATRIX3x5 A; MATRIX5x2 B; MATRIX3x2 C;\ninput A, B;\nC = mmul(A, B);\nreturn C;");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->nodes()[0].static_parameters, (StaticParameters{3, 5, 2}));
  EXPECT_TRUE((*graph)->nodes()[0].mapped());
  ASSERT_EQ((*graph)->sizes().size(), 1u);
  EXPECT_EQ((*graph)->sizes()[0], (Size{"elements", 31744}));
}

}  // namespace
}  // namespace fusion
