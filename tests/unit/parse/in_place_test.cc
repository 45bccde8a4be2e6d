// Outputs that take the memory of inputs: `return p2 into p;`.
#include <gmock/gmock.h>

#include "tests/unit/parse/source.h"

namespace fusion {
namespace {

using testing::ParseMessage;
using testing::ParseText;
using testing::TextErrors;

constexpr char kStep[] =
    "size n;\n\nvector[n] p, g, p2;\n\ninput p, g;\n\np2 = axpy(-0.1, g, p);\n\nreturn p2 into p;\n";

std::string WithStatements(const std::string& statements) {
  return "size m = 4, n = 4;\nmatrix[m,n] A, B;  vector[m] y, p, q, r;  vector[n] x;  scalar a, b;\n" +
         statements;
}

TEST(InPlace, IsReadAndPrinted) {
  const auto graph = ParseText(kStep);
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Value& output = (*graph)->value((*graph)->outputs()[0]);
  ASSERT_TRUE(output.memory_of.has_value());
  const Value& input = (*graph)->value(*output.memory_of);
  EXPECT_EQ(input.name, "p");
  EXPECT_EQ(input.overwritten_by, output.id);
  EXPECT_EQ(PrintFuse(**graph), std::string(kStep));
  const v1::Graph message = ToProto(**graph);
  EXPECT_EQ(message.in_place().at("p2"), "p");
  const auto again = ParseMessage(message);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(GraphHash(**again), GraphHash(**graph));
}

TEST(InPlace, IsAnotherGraph) {
  const auto in_place = ParseText(kStep);
  std::string text = kStep;
  text.replace(text.find(" into p"), 7, "");
  const auto beside = ParseText(text);
  ASSERT_TRUE(in_place.ok() && beside.ok());
  EXPECT_NE(GraphHash(**in_place), GraphHash(**beside));
}

TEST(InPlace, TheWordIsANameAnywhereElse) {
  EXPECT_EQ(TextErrors("vector[3] into, y;\ninput into;\ny = neg(into);\nreturn y into into;\n"), "ok");
  EXPECT_EQ(TextErrors("vector[3] into, y;\ninput y;\ninto = neg(y);\nreturn into;\n"), "ok");
  EXPECT_EQ(TextErrors("vector[3] into, y;\ninput y;\ninto = neg(y);\nreturn into into y;\n"), "ok");
}

TEST(InPlace, AnInputWithAMeaningIsAskedFor) {
  EXPECT_EQ(TextErrors("vector[3] x, y;\ninput x;\ny = neg(x);\nreturn y into;\n"),
            "f.fuse:4:14: error: expected the input whose memory the output takes, as in return p2 into p;, "
            "found ;");
  EXPECT_THAT(TextErrors(WithStatements("input p;\nq = neg(p);\nr = neg(q);\nreturn r into q, q;\n")),
              ::testing::HasSubstr("f.fuse:6:15: error: q is no input"));
  EXPECT_THAT(TextErrors(WithStatements("input p;\nq = neg(p);\nreturn q into nobody;\n")),
              ::testing::HasSubstr("nobody"));
  EXPECT_THAT(TextErrors(WithStatements("input p;\nq = neg(p);\nr = neg(p);\nreturn q into p, r into p;\n")),
              ::testing::HasSubstr("the memory of p is that of q already"));
}

TEST(InPlace, TypesAreTheSame) {
  EXPECT_THAT(TextErrors(WithStatements(
                  "input p, x;\nq = neg(p);\nA = ger(B, p, x);\ninput B;\nreturn q into x, A;\n")),
              ::testing::HasSubstr(
                  "q is vector[m], but x is vector[n]; an output takes the memory of an input of its "
                  "own type"));
  EXPECT_THAT(TextErrors(WithStatements("input a;\nb = neg(a);\nreturn b into a;\n")),
              ::testing::HasSubstr("a is a scalar, which is handed over by value"));
  EXPECT_THAT(TextErrors("MATRIX3x3 A, B;\ninput A;\nB = mtrans(A);\nreturn B into A;\n"),
              ::testing::HasSubstr("A is a list of small elements"));
}

// A call that reads the input later would read the result.
TEST(InPlace, TheInputIsReadBefore) {
  EXPECT_THAT(TextErrors(WithStatements("input p;\nq = neg(p);\nr = square(p);\nreturn q into p, r;\n")),
              ::testing::HasSubstr(
                  "f.fuse:5:12: error: p is read after q has taken its memory at line 4; move this call "
                  "above that"));
  EXPECT_EQ(TextErrors(WithStatements("input p;\nr = square(p);\nq = neg(p);\nreturn q into p, r;\n")), "ok");
}

TEST(InPlace, TheWriterReadsEntryByEntry) {
  EXPECT_THAT(
      TextErrors(WithStatements("input A, y, a, b, x;\nq = gemv(a, A, x, b, y);\nreturn q into y;\n")),
      ::testing::HasSubstr("q cannot take the memory of y: gemv does not read it entry by entry"));
  EXPECT_EQ(TextErrors(WithStatements("input A, y, p, a, b, x;\nr = vadd(p, y);\nq = gemv(a, A, x, b, y);\n"
                                      "return q into p, r;\n")),
            "ok");
}

TEST(InPlace, AMessageNamesItsOutputs) {
  v1::Graph message = ToProto(**ParseText(kStep));
  (*message.mutable_in_place())["p3"] = "p";
  EXPECT_THAT(testing::Errors(ParseMessage(message)),
              ::testing::HasSubstr("in_place: p3 is not among the outputs"));
}

}  // namespace
}  // namespace fusion
