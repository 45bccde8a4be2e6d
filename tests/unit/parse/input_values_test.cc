#include "server/parse/input_values.h"

#include <limits>
#include <map>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "tests/unit/parse/source.h"

namespace fusion {
namespace {

using testing::Errors;
using testing::ParseMessage;
using testing::ParseText;
using testing::TextErrors;

// A graph of a square and another matrix, a vector, a scalar and lists, whose inputs are given from column 7
// of line 3 on.
std::string WithInputs(const std::string& inputs) {
  return absl::StrCat(
      "size m, n; matrix[n,n] A, A2; f64 matrix[m,n] B, B2; vector[n] x, x2; scalar a;\n",
      "SCALAR s, s2; VECTOR3 v, v2; MATRIX3x3 M, M2; MATRIX2x3 R, R2;\ninput ", inputs,
      ";\nA2 = neg(A); B2 = neg(B); x2 = mul(a, x); s2 = neg(s); v2 = neg(v); M2 = neg(M); R2 = neg(R);\n",
      "return A2, B2, x2, s2, v2, M2, R2;\n");
}

// What is asked of each input of a text that is right.
std::map<std::string, std::string> ValuesOf(const absl::StatusOr<std::shared_ptr<const Graph>>& graph) {
  EXPECT_TRUE(graph.ok()) << graph.status();
  std::map<std::string, std::string> values;
  if (!graph.ok()) return values;
  for (ValueId id : (*graph)->inputs()) {
    const Value& input = (*graph)->value(id);
    if (input.values.kind() != v1::InputValues::DEFAULT) values[input.name] = input.values.ShortDebugString();
  }
  return values;
}

TEST(InputValues, EachKindIsReadBehindEachName) {
  const std::map<std::string, std::string> expected = {{"A", "kind: POSITIVE_DEFINITE"},
                                                       {"B", "kind: INTEGERS lower: -3 upper: 9"},
                                                       {"M", "kind: POSITIVE_DEFINITE"},
                                                       {"R", "kind: UNIT_ROWS"},
                                                       {"a", "kind: UNIFORM lower: -1.25 upper: -0.25"},
                                                       {"v", "kind: SORTED lower: -1 upper: 1"},
                                                       {"x", "kind: UNIFORM lower: 0.5 upper: 2"}};
  EXPECT_EQ(ValuesOf(ParseText(WithInputs("A = spd, x in (0.5, 2), s, B = integers(-3, 9), M = spd,\n"
                                          "R = unit_rows, a = negative, v = sorted"))),
            expected);
  EXPECT_EQ(ValuesOf(ParseText(WithInputs(
                "A = probabilities, B = one_hot, x = sorted(0, 1e3), a = signed, s = positive, v, M, R"))),
            (std::map<std::string, std::string>{{"A", "kind: PROBABILITIES"},
                                                {"B", "kind: ONE_HOT"},
                                                {"a", "kind: UNIFORM lower: -1 upper: 1"},
                                                {"s", "kind: UNIFORM lower: 0.25 upper: 1.25"},
                                                {"x", "kind: SORTED upper: 1000"}}));
}

TEST(InputValues, TheWordsOfKindsAreNamesLikeOthers) {
  const std::string text =
      "vector[5] in, spd, integers, sorted, file;\ninput in, spd in (0, 1), integers = sorted;\n"
      "sorted = add(in, spd); file = add(sorted, integers);\nreturn file;\n";
  EXPECT_EQ(ValuesOf(ParseText(text)),
            (std::map<std::string, std::string>{{"integers", "kind: SORTED lower: -1 upper: 1"},
                                                {"spd", "kind: UNIFORM upper: 1"}}));
  EXPECT_EQ(ValuesOf(ParseText("vector[5] in, y;\ninput in in (0, 1);\ny = neg(in);\nreturn y;\n")),
            (std::map<std::string, std::string>{{"in", "kind: UNIFORM upper: 1"}}));
}

TEST(InputValues, AllMistakesAreToldAtOnceWhereTheyStand) {
  EXPECT_EQ(TextErrors(WithInputs("A = sdp, B = spd, x in (2, 0.5), a = one_hot, s = integers(0.5, 9),\n"
                                  "v = integers, M = spd(1, 2), R = spd")),
            "f.fuse:3:11: error: unknown kind of values sdp (did you mean spd?)\n"
            "f.fuse:3:20: error: spd takes square matrices: matrix[n,n] or MATRIX3x3; B is f64 matrix[m,n]\n"
            "f.fuse:3:31: error: the lower bound must be less than the upper one, but they are 2.0 and 0.5\n"
            "f.fuse:3:44: error: one_hot takes rows: vectors or matrices, or lists of them; a is scalar\n"
            "f.fuse:3:66: error: 0.5 is no whole number\n"
            "f.fuse:4:5: error: integers takes two numbers, as in integers(0, 9)\n"
            "f.fuse:4:19: error: spd takes no numbers\n"
            "f.fuse:4:34: error: spd takes square matrices: matrix[n,n] or MATRIX3x3; R is MATRIX2x3");
  EXPECT_EQ(TextErrors(WithInputs("A, B, x = gauss, a, s = sorted, v, M, R")),
            "f.fuse:3:17: error: unknown kind of values gauss; there are spd, probabilities, integers(0, 9), "
            "sorted, "
            "one_hot, unit_rows, positive, negative, signed, and ranges: x in (0.5, 2)\n"
            "f.fuse:3:31: error: sorted takes rows: vectors or matrices, or lists of them; s is SCALAR");
}

TEST(InputValues, BoundsAreNumbersThatTheTypeHas) {
  const auto error = [](const std::string& inputs) {
    const std::string text = TextErrors(WithInputs(inputs));
    const size_t begin = text.find("error: ");
    return begin == std::string::npos ? text : text.substr(begin + 7);
  };
  EXPECT_EQ(error("A, B, x in (0, 1e39), a, s, v, M, R"),
            "this number is too large for f32; the largest is 3.4e38");
  EXPECT_EQ(error("A, B in (0, 1e39), x, a, s, v, M, R"), "ok");
  EXPECT_EQ(error("A, B in (-1.7e308, 1.7e308), x, a, s, v, M, R"),
            "the bounds are further apart than the largest f64, 1.8e308");
  EXPECT_EQ(error("A, B, x in (-3e38, 3e38), a, s, v, M, R"), "ok");
  EXPECT_EQ(error("A, B, x in (1, 1.00000001), a, s, v, M, R"), "no f32 lies between 1.0 and 1.00000001");
  EXPECT_EQ(error("A, B, x in (1, 1), a, s, v, M, R"),
            "the lower bound must be less than the upper one, but they are 1.0 and 1.0");
  EXPECT_EQ(error("A, B, x = integers(0, 16777217), a, s, v, M, R"),
            "beyond 16777216 not all whole numbers are f32 numbers");
  EXPECT_EQ(error("A, B = integers(0, 16777217), x, a, s, v, M, R"), "ok");
  EXPECT_EQ(error("A, B, x = integers(4, 4), a, s, v, M, R"), "ok");
  EXPECT_EQ(error("A, B, x = integers(4, 3), a, s, v, M, R"),
            "the first number must not be greater than the second");
  EXPECT_EQ(error("A, B, x in (1), a, s, v, M, R"), "a range has two bounds, as in x in (0.5, 2)");
  EXPECT_EQ(error("A, B, x = sorted(1, 2, 3), a, s, v, M, R"),
            "sorted takes two numbers, as in sorted(0, 1), or none at all");
}

TEST(InputValues, WhatIsNoStatementIsToldOnce) {
  EXPECT_EQ(TextErrors("vector[5] x, y;\ninput x in [0, 1];\ny = neg(x);\nreturn y;\n"),
            "f.fuse:2:12: error: expected ( and two bounds, as in x in (0.5, 2), found [");
  EXPECT_EQ(TextErrors("vector[5] x, y;\ninput x = 5;\ny = neg(x);\nreturn y;\n"),
            "f.fuse:2:11: error: expected a kind of values, as in input A = spd;, found 5");
  EXPECT_EQ(TextErrors("vector[5] x, y;\ninput x in (a, 1);\ny = neg(x);\nreturn y;\n"),
            "f.fuse:2:13: error: expected a number, found a");
  EXPECT_EQ(TextErrors("vector[5] x, y;\ninput x in (0, 1\ny = neg(x);\nreturn y;\n"),
            "f.fuse:3:1: error: expected , or ), found y");
  EXPECT_EQ(TextErrors("vector[5] x, y;\ninput x = sorted\ny = neg(x);\nreturn y;\n"),
            "f.fuse:2:17: error: missing ; at the end of this statement");
}

TEST(InputValues, ArePrintedAndReadBackInEachForm) {
  auto graph =
      ParseText(WithInputs("A = spd, x in (0.5, 2), s = positive, B = integers(-3, 9), M = probabilities, R "
                           "= unit_rows, a, v = sorted"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::string printed = PrintFuse(**graph);
  EXPECT_NE(printed.find(
                "input A = spd, x in (0.5, 2.0), s in (0.25, 1.25), B = integers(-3, 9), M = probabilities,\n"
                "    R = unit_rows, a, v = sorted(-1.0, 1.0);\n"),
            std::string::npos)
      << printed;
  EXPECT_EQ(ValuesOf(ParseText(printed)), ValuesOf(graph));
  EXPECT_EQ(ValuesOf(ParseMessage(ToProto(**graph))), ValuesOf(graph));
  EXPECT_EQ(ValuesOf(ParseText(PrintJson(**graph))), ValuesOf(graph));
}

TEST(InputValues, DoNotChangeTheHashOfTheGraph) {
  auto plain = ParseText(WithInputs("A, B, x, a, s, v, M, R"));
  auto asked = ParseText(WithInputs("A = spd, B, x in (0, 1), a, s, v, M, R"));
  ASSERT_TRUE(plain.ok() && asked.ok());
  EXPECT_EQ(GraphHash(**plain), GraphHash(**asked));
}

// z = neg(x) with more fields.
std::string ErrorsOfValues(const std::string& more) {
  v1::Graph graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat("variables { name: 'x' type { extents { constant: 4 } } } ",
                   "variables { name: 'z' type { extents { constant: 4 } } } inputs: 'x' ",
                   "calls { result: 'z' function: 'neg' arguments { variable: 'x' } } outputs: 'z' ", more),
      &graph));
  return Errors(ParseMessage(graph));
}

TEST(InputValues, OfAMessageAreCheckedAlike) {
  const auto values = [](const std::string& value) {
    return absl::StrCat("input_values { key: 'x' value { ", value, " } }");
  };
  EXPECT_EQ(ErrorsOfValues(values("kind: SORTED")), "ok");
  EXPECT_EQ(ErrorsOfValues(values("kind: DEFAULT")), "ok");
  EXPECT_EQ(
      ErrorsOfValues(values("kind: POSITIVE_DEFINITE lower: 1")),
      "f.pb:inputs[0]: error: input_values of x: POSITIVE_DEFINITE takes no numbers\n"
      "f.pb:inputs[0]: error: input_values of x: POSITIVE_DEFINITE takes square matrices: matrix[n,n] or "
      "MATRIX3x3; x is vector[4]");
  EXPECT_EQ(ErrorsOfValues(values("kind: UNIFORM")),
            "f.pb:inputs[0]: error: input_values of x: the lower bound must be less than the upper one, but "
            "they are "
            "0.0 and 0.0");
  EXPECT_EQ(ErrorsOfValues(values("kind: INTEGERS lower: nan upper: inf")),
            "f.pb:inputs[0]: error: input_values of x: a bound must be a finite number\n"
            "f.pb:inputs[0]: error: input_values of x: a bound must be a finite number");
  EXPECT_EQ(ErrorsOfValues(values("kind: SORTED blob: 'q'")),
            "f.pb:inputs[0]: error: input_values of x: blob is given, but the kind is not FILE");
  EXPECT_EQ(
      ErrorsOfValues(values("kind: FILE")),
      "f.pb:inputs[0]: error: input_values of x: a graph names no FILE; what is submitted with it does");
  EXPECT_EQ(ErrorsOfValues("input_values { key: 'xx' value { kind: SORTED } }"),
            "f.pb: error: input_values: the graph has no input xx");
  EXPECT_EQ(ErrorsOfValues("input_values { key: 'X' value { kind: SORTED } }"),
            "f.pb: error: input_values: the graph has no input X (did you mean x?)");
  v1::Graph graph = ToProto(**ParseText("vector[4] x, z; input x; z = neg(x); return z;"));
  (*graph.mutable_input_values())["x"].set_kind(static_cast<v1::InputValues::Kind>(77));
  EXPECT_EQ(Errors(ParseMessage(graph)), "f.pb:inputs[0]: error: input_values of x: unknown kind 77");
}

TEST(InputValues, OfTheSubmissionComeBeforeThoseOfTheGraph) {
  v1::GraphSource source;
  source.set_fuse("vector[4] x, y, z;\ninput x = positive, y = sorted;\nz = add(x, y);\nreturn z;\n");
  source.set_file_name("f.fuse");
  const std::string digest = absl::StrCat("sha256:", std::string(64, 'a'));
  v1::InputValues& file = (*source.mutable_input_values())["x"];
  file.set_kind(v1::InputValues::FILE);
  file.set_blob(digest);
  (*source.mutable_input_values())["y"].set_kind(v1::InputValues::DEFAULT);
  auto graph = ParseSource(source, testing::Library());
  EXPECT_EQ(ValuesOf(graph),
            (std::map<std::string, std::string>{{"x", "kind: FILE blob: \"" + digest + "\""}}));
  EXPECT_EQ(PrintFuse(**graph), "vector[4] x, y, z;\n\ninput x, y;\n\nz = add(x, y);\n\nreturn z;\n");
  EXPECT_TRUE(ToProto(**graph).input_values().empty());
  file.set_blob("sha256:ab");
  EXPECT_EQ(
      Errors(ParseSource(source, testing::Library())),
      "f.fuse:2:7: error: input_values of x: blob must be a digest, sha256: and 64 hexadecimal digits, as "
      "UploadInput gives it");
}

}  // namespace
}  // namespace fusion
