#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/unit/parse/source.h"

namespace fusion {
namespace {

using testing::ParseText;

TEST(PrintFuse, FixedLayout) {
  auto graph = ParseText(
      "size k; size elements = 5; f64 SCALAR s,t; vector[k] unused; f64 scalar a; input s; input a;"
      "t = mul(a, s); return t;");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(
      PrintFuse(**graph),
      "size k;\nsize elements = 5;\n\nf64 SCALAR s, t;\nf64 scalar a;\n\ninput s, a;\n\nt = mul(a, s);\n\n"
      "return t;\n");
}

TEST(PrintFuse, BreaksLongLists) {
  std::string names = "variable_number_0";
  std::string calls;
  for (int i = 1; i < 40; ++i) {
    absl::StrAppend(&names, ", variable_number_", i);
    absl::StrAppend(&calls, "variable_number_", i, " = neg(variable_number_", i - 1, ");\n");
  }
  auto graph =
      ParseText("SCALAR " + names + ";\ninput variable_number_0;\n" + calls + "return variable_number_39;\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const std::string printed = PrintFuse(**graph);
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(printed, '\n')))
    EXPECT_LE(line.size(), 100u);
  auto again = ParseText(printed);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(PrintFuse(**again), printed);
}

TEST(PrintGraphviz, Small) {
  auto graph = ParseText("vector[3] x, y;\ninput x;\ny = axpy(2, x, x);\nreturn y;\n");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(PrintGraphviz(**graph),
            "digraph \"f\" {\n"
            "  input_x [shape=box, label=\"x\"];\n"
            "  call_0 [label=\"axpy\\n2.0\"];\n"
            "  output_y [shape=box, style=bold, label=\"y\"];\n"
            "  input_x -> call_0 [label=\"x\\nvector[3]\"];\n"
            "  input_x -> call_0 [label=\"x\\nvector[3]\"];\n"
            "  call_0 -> output_y [label=\"y\\nvector[3]\"];\n"
            "}\n");
}

}  // namespace
}  // namespace fusion
