#include "server/parse/proto_reader.h"

#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "tests/unit/parse/source.h"

namespace fusion {
namespace {

using testing::Errors;
using testing::ParseMessage;
using testing::ParseText;

v1::Graph FromTextFormat(const std::string& text) {
  v1::Graph graph;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &graph)) << text;
  return graph;
}

// y = neg(x) with more fields.
std::string MessageErrors(const std::string& more) {
  return Errors(ParseMessage(FromTextFormat(absl::StrCat(
      "variables { name: 'x' type { mapped: true } } variables { name: 'y' type { mapped: true } } inputs: "
      "'x' ",
      "calls { result: 'y' function: 'neg' arguments { variable: 'x' } } outputs: 'y' ", more))));
}

TEST(ReadGraph, ReadsEveryKindOfType) {
  auto graph = ParseMessage(FromTextFormat(R"pb(
    name: "named"
    sizes { name: "m" }
    sizes { name: "n" default_value: 7 }
    variables {
      name: "A"
      type {
        data_type: F64
        extents { size: "m" }
        extents { constant: 9 }
      }
    }
    variables {
      name: "x"
      type {
        data_type: F64
        extents { constant: 9 }
      }
    }
    variables {
      name: "y"
      type {
        data_type: F64
        extents { size: "m" }
      }
    }
    variables {
      name: "M"
      type { mapped: true element_shape: 3 element_shape: 2 }
    }
    variables {
      name: "T"
      type { mapped: true element_shape: 2 element_shape: 3 }
    }
    inputs: "A"
    inputs: "x"
    inputs: "M"
    calls {
      result: "y"
      function: "gemv"
      arguments { literal: 0 }
      arguments { variable: "A" }
      arguments { variable: "x" }
    }
    calls {
      result: "T"
      function: "mtrans<3,2>"
      arguments { variable: "M" }
    }
    outputs: "T"
    outputs: "y"
  )pb"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->name(), "named");
  EXPECT_EQ(PrintFuse(**graph),
            "size m;\nsize n = 7;\n\n"
            "f64 matrix[m,9] A;\nf64 vector[9] x;\nMATRIX3x2 M;\nf64 vector[m] y;\nMATRIX2x3 T;\n\n"
            "input A, x, M;\n\n"
            "y = gemv(0.0, A, x);\nT = mtrans(M);\n\n"
            "return T, y;\n");
}

TEST(ReadGraph, ErrorsOfTypes) {
  EXPECT_EQ(MessageErrors("variables { name: 'a' type { mapped: true element_shape: 33 } }"),
            "f.pb:variables[2].type: error: sizes of elements are 1 to 32, but one is 33");
  EXPECT_EQ(MessageErrors("variables { name: 'a' type { mapped: true element_shape: [1, 2, 3] } }"),
            "f.pb:variables[2].type: error: element_shape has 3 entries; at most 2 are allowed");
  EXPECT_EQ(MessageErrors("variables { name: 'a' type { mapped: true extents { constant: 3 } } }"),
            "f.pb:variables[2].type: error: a mapped type has no extents; its length is the size elements");
  EXPECT_EQ(MessageErrors("variables { name: 'a' type { element_shape: 3 } }"),
            "f.pb:variables[2].type: error: element_shape is given, but mapped is not set");
  EXPECT_EQ(MessageErrors("variables { name: 'a' type { extents {} } }"),
            "f.pb:variables[2].type.extents[0]: error: the extent is empty; give size or constant");
  EXPECT_EQ(MessageErrors("variables { name: 'a' type { extents { size: 'k' } extents { constant: 0 } } }"),
            "f.pb:variables[2].type.extents[0]: error: size k is not declared; add: size k;\n"
            "f.pb:variables[2].type.extents[1]: error: a size must be from 1 to 2^62, but it is 0");
  EXPECT_EQ(
      MessageErrors(
          "variables { name: 'a' type { extents { constant: 3 } leading_dimension { constant: 4 } } }"),
      "f.pb:variables[2].type: error: leading_dimension is given, but the type is no matrix of two extents");
  EXPECT_EQ(MessageErrors("variables { name: 'a' type { extents { constant: 3 } extents { constant: 5 } "
                          "leading_dimension {} } }"),
            "f.pb:variables[2].type: error: the extent is empty; give size or constant");
  EXPECT_EQ(
      MessageErrors("variables { name: 'a' type { extents { size: 'a b' } } }"),
      "f.pb:variables[2].type.extents[0]: error: a name consists of letters, digits and _ and does not start "
      "with a digit");
  v1::Graph graph = FromTextFormat("variables { name: 'a' } outputs: 'a'");
  graph.mutable_variables(0)->mutable_type()->set_data_type(static_cast<DataType>(9));
  EXPECT_TRUE(absl::StrContains(Errors(ParseMessage(graph)),
                                "f.pb:variables[0].type: error: unknown data_type 9; it is F32 or F64"));
}

TEST(ReadGraph, ErrorsOfNames) {
  EXPECT_EQ(MessageErrors("variables { name: 'a b' } variables { name: '' } variables { name: 'x' }"),
            "f.pb:variables[2].name: error: a name consists of letters, digits and _ and does not start with "
            "a digit\n"
            "f.pb:variables[3].name: error: the name is empty\n"
            "f.pb:variables[4].name: error: x is already declared at variables[0].name");
  EXPECT_EQ(MessageErrors("inputs: 'a\\nb' inputs: '' outputs: 'y'"),
            "f.pb:inputs[1]: error: a?b is not declared; declare it with its type\n"
            "f.pb:inputs[2]: error: the name is empty\n"
            "f.pb:outputs[1]: error: y is returned twice");
}

TEST(ReadGraph, ErrorsOfCalls) {
  EXPECT_EQ(MessageErrors("variables { name: 'z' } calls { result: 'z' function: 'mul' arguments {} }"),
            "f.pb:calls[1].arguments[0]: error: the argument is empty; give variable or literal");
  EXPECT_EQ(MessageErrors("calls { result: 'y' function: 'neg' arguments { variable: 'x' } }"),
            "f.pb:calls[1].result: error: y is already computed at calls[0].result; give it another name");
  EXPECT_EQ(MessageErrors("calls { result: 'q' function: 'negg' arguments { variable: 'x' } } outputs: 'q'"),
            "f.pb:calls[1].function: error: unknown function negg (did you mean neg?)\n"
            "f.pb:calls[1].result: error: q is not declared; declare it with its type");
  for (const char* function : {"", "a b", "mmul<", "mmul<>", "mmul<3", "mmul<3>x", "mmul<n>", "3m"}) {
    EXPECT_EQ(MessageErrors(absl::StrCat("calls { result: 'y' function: '", function, "' }")),
              absl::StrCat("f.pb:calls[1].function: error: ", function,
                           " is no name of a function; write it like gemv, mmul33 or mmul<3,3>"));
  }
}

TEST(ReadGraph, LiteralsAreFinite) {
  for (double literal : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    v1::Graph graph = FromTextFormat(
        "variables { name: 'y' type { mapped: true } } calls { result: 'y' function: 'neg' arguments {} } "
        "outputs: 'y'");
    graph.mutable_calls(0)->mutable_arguments(0)->set_literal(literal);
    EXPECT_EQ(Errors(ParseMessage(graph)),
              "f.pb:calls[0].arguments[0]: error: the literal must be a finite number");
  }
}

TEST(ReadGraph, RecursionAndOrder) {
  EXPECT_EQ(MessageErrors(
                "variables { name: 'a' type { mapped: true } } variables { name: 'b' type { mapped: true } } "
                "calls { result: 'a' function: 'neg' arguments { variable: 'b' } } "
                "calls { result: 'b' function: 'neg' arguments { variable: 'a' } } outputs: 'b'"),
            "f.pb:calls[1].arguments[0]: error: recursion: a needs b, b needs a");
  EXPECT_EQ(MessageErrors(
                "variables { name: 'a' type { mapped: true } } variables { name: 'b' type { mapped: true } } "
                "calls { result: 'a' function: 'neg' arguments { variable: 'b' } } "
                "calls { result: 'b' function: 'neg' arguments { variable: 'x' } } outputs: 'a'"),
            "f.pb:calls[1].arguments[0]: error: b is used before it is computed at calls[2].result; move its "
            "computation up");
}

TEST(ReadGraph, Outputs) {
  EXPECT_EQ(Errors(ParseMessage(v1::Graph())), "f.pb: error: outputs is empty; name what is computed");
  EXPECT_EQ(MessageErrors("variables { name: 'a' type { mapped: true } } "
                          "calls { result: 'a' function: 'neg' arguments { variable: 'x' } } outputs: 'x'"),
            "f.pb:outputs[1]: error: output x is an input; return only what is computed\n"
            "f.pb:calls[1].result: error: a is computed but never used; return it or delete the call");
}

constexpr char kTwice[] = R"pb(
  name: "twice"
  domain: "test"
  documentation: "Twice the operand."
  overloads {
    form: ENTRYWISE
    operands { name: "x" type: "any" }
    result: "any"
    formula: "y = 2 * x"
    routine: "twice_map"
    flops: "1"
  }
  source: "template <class T> FUSION_DEVICE T twice_map(T x) { return x + x; }"
)pb";

TEST(ReadGraph, InlineFunctions) {
  v1::Graph message = FromTextFormat(absl::StrCat(
      "variables { name: 'x' type { mapped: true } } variables { name: 'y' type { mapped: true } } inputs: "
      "'x' "
      "calls { result: 'y' function: 'twice' arguments { variable: 'x' } } outputs: 'y' functions {",
      kTwice, "}"));
  auto graph = ParseMessage(message);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE((*graph)->nodes()[0].function->is_inline);
  EXPECT_EQ(testing::Library()->Find("twice"), nullptr);
  const v1::Graph again = ToProto(**graph);
  ASSERT_EQ(again.functions_size(), 1);
  EXPECT_EQ(again.functions(0).SerializeAsString(), message.functions(0).SerializeAsString());
  auto second = ParseMessage(again);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(GraphHash(**second), GraphHash(**graph));
  message.mutable_functions(0)->set_source(
      "template <class T> FUSION_DEVICE T twice_map(T x) { return T(2) * x; }");
  auto changed = ParseMessage(message);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_NE(GraphHash(**changed), GraphHash(**graph));
}

TEST(ReadGraph, InlineFunctionsMustNotChangeTheLibrary) {
  v1::Graph message = FromTextFormat(absl::StrCat("functions {", kTwice, "} outputs: 'y'"));
  message.mutable_functions(0)->set_name("neg");
  EXPECT_TRUE(absl::StartsWith(Errors(ParseMessage(message)), "f.pb: error: functions: "));
}

TEST(ReadJson, IsTheSameGraph) {
  auto graph = ParseText("size n;\nvector[n] x, y;\ninput x;\ny = scal(0.1, x);\nreturn y;\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto again = ParseText("\n  " + PrintJson(**graph), "g.json");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(PrintFuse(**again), PrintFuse(**graph));
  EXPECT_EQ((*again)->name(), "f");
}

TEST(ReadJson, ErrorsOfSyntax) {
  EXPECT_TRUE(
      absl::StartsWith(Errors(ParseText("{\n  \"calls\": [}\n", "g.json")), "g.json:2:13: error: JSON: "))
      << Errors(ParseText("{\n  \"calls\": [}\n", "g.json"));
  EXPECT_TRUE(absl::StartsWith(Errors(ParseText("{", "g.json")), "g.json:1:2: error: JSON: "))
      << Errors(ParseText("{", "g.json"));
  std::string deep = "{\"calls\":";
  for (int i = 0; i < 100000; ++i) deep += '[';
  EXPECT_TRUE(
      absl::StrContains(Errors(ParseText(deep, "g.json")), "error: JSON: the JSON is nested too deeply"));
}

TEST(ReadJson, ErrorsOfFields) {
  const std::string unknown = Errors(ParseText(R"({"calls": [{"result": "y", "colour": 3}]})", "g.json"));
  EXPECT_TRUE(absl::StartsWith(unknown, "g.json: error: JSON: ")) << unknown;
  EXPECT_TRUE(absl::StrContains(unknown, "calls[0]")) << unknown;
  EXPECT_TRUE(absl::StrContains(unknown, "colour")) << unknown;
  const std::string wrong = Errors(ParseText(R"({"calls": 3})", "g.json"));
  EXPECT_TRUE(absl::StartsWith(wrong, "g.json: error: JSON: ")) << wrong;
  EXPECT_EQ(Errors(ParseText(R"({"outputs": ["y"]})", "g.json")),
            "g.json:outputs[0]: error: y is not declared; declare it with its type");
}

}  // namespace
}  // namespace fusion
