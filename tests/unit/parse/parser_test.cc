#include "server/parse/parser.h"

#include "tests/unit/parse/source.h"

namespace fusion {
namespace {

using testing::ParseText;
using testing::TextErrors;

// Wraps statements of scalars of a mapped list, so that each test shows only what it is about.
std::string InFile(const std::string& statement) {
  return "SCALAR x, y;\ninput x;\n" + statement + "\nreturn y;\n";
}

TEST(Parser, AcceptsEveryForm) {
  auto graph = ParseText(
      "size k, m = 3, n = +7; ;\n"
      "f64 matrix[m,n] A; f64 vector [ n ] x; f64 vector[m] y, z; f64 scalar s;\n"
      "f64 vector[3] c; f64 scalar d;\n"
      "input A; input x,\n  s, c; // several\n"
      "y = gemv(-2, A, x); /* comments /* do not nest */ z=scal(s,y);\n"
      "d = dot(c, c);\n"
      "return z, d;");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->node_count(), 3);
  EXPECT_EQ((*graph)->sizes().size(), 3u);
  EXPECT_FALSE((*graph)->sizes()[0].default_value.has_value());
  EXPECT_EQ((*graph)->sizes()[2].default_value, 7);
  EXPECT_EQ((*graph)->value((*graph)->inputs()[0]).type, Type::Matrix(v1::F64, Extent{"m"}, Extent{"n"}));
  EXPECT_EQ((*graph)->value((*graph)->inputs()[3]).type, Type::Vector(v1::F64, Extent{"", 3}));
  const Value& literal = (*graph)->value((*graph)->nodes()[0].operands[0]);
  EXPECT_EQ(literal.literal, -2.0);
  EXPECT_EQ(literal.type, Type::Scalar(v1::F64));
}

TEST(Parser, AcceptsWindowsLinesAndByteOrderMark) {
  auto graph = ParseText("\xEF\xBB\xBFSCALAR x, y;\r\ninput x;\r\ny = neg(x);\r\nreturn y;\r\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->nodes()[0].position.line, 3);
  EXPECT_EQ((*graph)->nodes()[0].position.column, 1);
}

TEST(Parser, AcceptsParametersOfFunctions) {
  auto graph =
      ParseText("MATRIX3x5 A; MATRIX5x2 B; MATRIX3x2 C;\ninput A, B;\nC = mmul< 3 , 5,2>(A, B);\nreturn C;");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->nodes()[0].function->name, "mmul");
}

TEST(Parser, NestedCall) {
  EXPECT_EQ(
      TextErrors(InFile("y = neg(exp(x));")),
      "f.fuse:3:9: error: nested call of exp; give the inner call a name: t = exp(...); and use t here");
}

TEST(Parser, Operators) {
  EXPECT_EQ(TextErrors(InFile("y = x + x;")),
            "f.fuse:3:7: error: the language has no operators; call a function, as in y = add(a, b);");
  EXPECT_EQ(TextErrors(InFile("y = x -1;")),
            "f.fuse:3:7: error: the language has no operators; call a function, as in y = sub(a, b);");
  EXPECT_EQ(TextErrors(InFile("y = x * x;")),
            "f.fuse:3:7: error: the language has no operators; call a function, as in y = mul(a, b);");
  EXPECT_EQ(TextErrors(InFile("y = x / x;")),
            "f.fuse:3:7: error: the language has no operators; call a function, as in y = div(a, b);");
}

TEST(Parser, CopyIsNoCall) {
  EXPECT_EQ(TextErrors(InFile("y = x;")),
            "f.fuse:3:5: error: x is not called; write y = f(...);, or use x itself in place of y");
  EXPECT_EQ(TextErrors(InFile("y = 1.0;")),
            "f.fuse:2:7: error: input x is never used; use it or delete it from the inputs\n"
            "f.fuse:3:5: error: expected the name of a function, as in x = f(a, b);, found 1.0");
}

TEST(Parser, CallWithoutResult) {
  EXPECT_EQ(TextErrors(InFile("neg(x);")),
            "f.fuse:3:1: error: the result of neg needs a name: x = neg(...);");
}

TEST(Parser, UnclosedCall) {
  EXPECT_EQ(TextErrors(InFile("y = neg(x;")), "f.fuse:3:10: error: expected , or ), found ;");
  EXPECT_EQ(TextErrors(InFile("y = neg(x,);")),
            "f.fuse:3:11: error: expected a variable or a number, found )");
  EXPECT_EQ(TextErrors(InFile("y = mmul<x>(x);")), "f.fuse:3:10: error: expected a whole number, found x");
  EXPECT_EQ(TextErrors(InFile("y = mmul<3(x);")), "f.fuse:3:11: error: expected , or >, found (");
  EXPECT_EQ(TextErrors("SCALAR x, y; input x; y = neg(x"),
            "f.fuse:1:32: error: expected , or ), the file ends\n"
            "f.fuse:1:32: error: return is missing; end the file with return x;");
}

TEST(Parser, MissingSemicolons) {
  EXPECT_EQ(TextErrors("SCALAR x, y\ninput x\ny = neg(x)\nreturn y"),
            "f.fuse:1:12: error: missing ; at the end of this statement\n"
            "f.fuse:2:8: error: missing ; at the end of this statement\n"
            "f.fuse:3:11: error: missing ; at the end of this statement\n"
            "f.fuse:4:9: error: missing ; at the end of this statement");
  EXPECT_EQ(TextErrors("SCALAR x y;\ninput x;\ny = neg(x);\nreturn y;"),
            "f.fuse:1:10: error: expected , or ;, found y");
}

TEST(Parser, Statements) {
  EXPECT_EQ(
      TextErrors(InFile("y = neg(x); 5;")),
      "f.fuse:3:13: error: expected a statement: a declaration, input, x = f(a, b); or return, found 5");
  EXPECT_EQ(TextErrors(InFile("y = neg(x); x, y;")), "f.fuse:3:14: error: expected = after x, found ,");
  EXPECT_EQ(TextErrors(InFile("y = neg(x); input ;")),
            "f.fuse:3:19: error: expected the name of an input, found ;");
  EXPECT_EQ(TextErrors(InFile("y = neg(x); SCALAR ;")),
            "f.fuse:3:20: error: expected the name of a variable, found ;");
  EXPECT_EQ(TextErrors(InFile("y = neg(x); size 3;")),
            "f.fuse:3:18: error: expected the name of a size, as in size n = 1000000;, found 3");
  EXPECT_EQ(TextErrors(InFile("y = neg(x); size n = m;")),
            "f.fuse:3:22: error: expected a whole number, found m");
}

TEST(Parser, Return) {
  EXPECT_EQ(TextErrors("SCALAR x, y;\ninput x;\ny = neg(x);\n"),
            "f.fuse:4:1: error: return is missing; end the file with return x;");
  EXPECT_EQ(TextErrors("SCALAR x, y;\ninput x;\ny = neg(x);\nreturn;\n"),
            "f.fuse:4:1: error: return lists no output; write return x;");
  EXPECT_EQ(TextErrors("SCALAR x, y, z;\ninput x;\ny = neg(x);\nreturn y;\nz = neg(y);\n"),
            "f.fuse:5:1: error: nothing may follow return (at line 4)");
  EXPECT_EQ(
      TextErrors("SCALAR x, y, z;\ninput x;\ny = neg(x);\nz = neg(y);\nreturn y;\nreturn z;\n"),
      "f.fuse:6:1: error: a second return (the first is at line 5); list all outputs in one: return x, y;");
  EXPECT_EQ(TextErrors("SCALAR x, y;\ninput x;\ny = neg(x);\nretrun y;\n"),
            "f.fuse:4:1: error: unknown type retrun (did you mean return?)");
}

TEST(Parser, UnknownTypes) {
  EXPECT_EQ(TextErrors("VECTOR x, y;\ninput x;\ny = neg(x);\nreturn y;"),
            "f.fuse:1:1: error: unknown type VECTOR (did you mean VECTOR3 or vector[n]?)");
  EXPECT_EQ(TextErrors("float x, y;\ninput x;\ny = neg(x);\nreturn y;"),
            "f.fuse:1:1: error: unknown type float (did you mean f32 scalar?)");
  EXPECT_EQ(TextErrors("Matrix3X3 x, y;\ninput x;\ny = neg(x);\nreturn y;"),
            "f.fuse:1:1: error: unknown type Matrix3X3 (did you mean MATRIX3x3?)");
  EXPECT_EQ(TextErrors("f64 vektor x, y;\ninput x;\ny = neg(x);\nreturn y;"),
            "f.fuse:1:5: error: unknown type vektor (did you mean vector?)");
  EXPECT_EQ(
      TextErrors("quaternion x, y;\ninput x;\ny = neg(x);\nreturn y;"),
      "f.fuse:1:1: error: unknown type quaternion; types are scalar, vector[n], matrix[m,n], SCALAR, VECTORn "
      "and MATRIXrxc");
}

TEST(Parser, SizesOfTypes) {
  EXPECT_EQ(
      TextErrors("size n;\nvector x;\nmatrix[n] A;\nvector[n,n] B;\nscalar[n] s;\nmatrix[n,n,n] T;\n"
                 "VECTOR3[n] v;\nvector[n w;\nvector[*] z;\n"),
      "f.fuse:2:8: error: vector is written vector[n], but 0 sizes are given\n"
      "f.fuse:3:7: error: matrix is written matrix[m,n], but 1 size is given (did you mean vector?)\n"
      "f.fuse:4:7: error: vector is written vector[n], but 2 sizes are given (did you mean matrix?)\n"
      "f.fuse:5:7: error: a scalar has no sizes; write scalar x, or vector[n] x\n"
      "f.fuse:6:7: error: matrix is written matrix[m,n], but 3 sizes are given\n"
      "f.fuse:7:8: error: VECTOR3 is the type of one element and has no sizes in []; whole collections are "
      "vector[n] and matrix[m,n]\n"
      "f.fuse:8:10: error: expected , or ], found w\n"
      "f.fuse:9:8: error: expected a size: a name or a whole number, found *\n"
      "f.fuse:10:1: error: return is missing; end the file with return x;");
}

TEST(Parser, LeadingDimensions) {
  auto graph = ParseText(
      "size n, lda = 9, ld = 3;\nmatrix[n,n,ld=lda] A;\nmatrix[ld,n,ld=16] C;\nmatrix[n,n] B;\nmatrix[ld,n] "
      "D;\n"
      "input A, C;\nB = neg(A);\nD = neg(C);\nreturn B, D;\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->values()[0].leading_dimension, Extent{"lda"});
  EXPECT_EQ((*graph)->values()[1].leading_dimension, (Extent{"", 16}));
  EXPECT_EQ(
      TextErrors("size n;\nvector[n,ld=n] x;\nmatrix[n,ld=n] A;\nmatrix[n,n,ld n] B;\nmatrix[n,n,ld=] C;\n"
                 "matrix[n,n,ld=n,n] D;\nreturn x;"),
      "f.fuse:2:12: error: expected , or ], found =\n"
      "f.fuse:3:12: error: expected , or ], found =\n"
      "f.fuse:4:15: error: expected = and the leading dimension, as in matrix[m,n,ld=lda], found n\n"
      "f.fuse:5:15: error: expected a size: a name or a whole number, found ]\n"
      "f.fuse:6:16: error: expected ], found ,");
}

TEST(Parser, SizesOfElements) {
  EXPECT_EQ(
      TextErrors("MATRIX0x3 x, y;\nVECTOR33 v, w;\ninput x, v;\ny = neg(x);\nw = neg(v);\nreturn y, w;\n"),
      "f.fuse:1:1: error: sizes of elements are 1 to 32, but the type is MATRIX0x3; larger ones are "
      "collections: vector[n], matrix[m,n]\n"
      "f.fuse:2:1: error: sizes of elements are 1 to 32, but the type is VECTOR33; larger ones are "
      "collections: vector[n], matrix[m,n]");
  EXPECT_TRUE(ParseText("MATRIX32x1 x, y;\ninput x;\ny = neg(x);\nreturn y;").ok());
}

TEST(Parser, Numbers) {
  EXPECT_EQ(TextErrors(InFile("y = mul(1.0f, x);")),
            "f.fuse:3:9: error: 1.0f is no number; write it like 1.0, -2 or 1e-3");
  EXPECT_EQ(TextErrors(InFile("y = mul(1e999, x);")), "f.fuse:3:9: error: 1e999 is too large for a double");
  EXPECT_EQ(TextErrors("size n = 1e6;\n" + InFile("y = neg(x);")),
            "f.fuse:1:10: error: 1e6 is no whole number");
  EXPECT_EQ(TextErrors("size n = 99999999999999999999;\n" + InFile("y = neg(x);")),
            "f.fuse:1:10: error: 99999999999999999999 is too large; a size is at most 2^62");
}

TEST(Parser, WordsOfTheLanguageAreNoNames) {
  EXPECT_EQ(TextErrors(
                "SCALAR x, y, size;\nVECTOR3 VECTOR3;\ninput x;\ny = neg(x);\nvector = neg(x);\nreturn y;\n"),
            "f.fuse:1:14: error: size is a word of the language; choose another name\n"
            "f.fuse:2:9: error: VECTOR3 is a word of the language; choose another name\n"
            "f.fuse:5:1: error: vector is a word of the language; choose another name");
}

// What a statement that could not be read would have said is unknown: nothing else is reported about its
// names.
TEST(Parser, NoErrorsThatFollowFromOthers) {
  EXPECT_EQ(TextErrors("SCALAR x, y, z;\ninput x;\ny = neg(x;\nz = exp(y);\nreturn z;\n"),
            "f.fuse:3:10: error: expected , or ), found ;");
  EXPECT_EQ(TextErrors("SCALAR x, y z;\ninput x;\ny = neg(x);\nz = exp(y);\nreturn z;\n"),
            "f.fuse:1:13: error: expected , or ;, found z");
  EXPECT_EQ(TextErrors("SCALAR x, y;\ninput x @;\ny = neg(x);\nreturn y;\n").find('\n'), std::string::npos);
}

TEST(Parser, GivesUpOneStatementAlone) {
  EXPECT_EQ(TextErrors("SCALAR x, y, z,\ninput x;\ny = neg(x);\nz = foo(y);\nreturn z;\n"),
            "f.fuse:2:1: error: expected the name of a variable, found input\n"
            "f.fuse:4:5: error: unknown function foo; fusion-client library list shows all functions");
}

}  // namespace
}  // namespace fusion
