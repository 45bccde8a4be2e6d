#include <string>

#include "absl/strings/str_cat.h"
#include "server/parse/parse.h"

namespace fusion {
namespace {

// Names are identifiers and types have no quotes, so nothing needs escaping. Prefixes keep inputs, calls and
// outputs apart, and the words of dot (node, edge) out of the way.
void AppendEdge(const std::string& from, const std::string& to, const Value& value, std::string* text) {
  absl::StrAppend(text, "  ", from, " -> ", to, " [label=\"", value.name, "\\n", value.type.ToString(),
                  "\"];\n");
}

std::string SourceOf(const Value& value) {
  return value.producer ? absl::StrCat("call_", value.producer->value) : absl::StrCat("input_", value.name);
}

}  // namespace

std::string PrintGraphviz(const Graph& graph) {
  std::string text = absl::StrCat("digraph \"", graph.name(), "\" {\n");
  for (ValueId id : graph.inputs())
    absl::StrAppend(&text, "  input_", graph.value(id).name, " [shape=box, label=\"", graph.value(id).name,
                    "\"];\n");
  for (const Node& node : graph.nodes()) {
    std::string label = node.function->name;
    for (ValueId id : node.operands)
      if (graph.value(id).literal) absl::StrAppend(&label, "\\n", graph.value(id).name);
    absl::StrAppend(&text, "  call_", node.id.value, " [label=\"", label, "\"];\n");
  }
  for (ValueId id : graph.outputs()) {
    const std::string& name = graph.value(id).name;
    absl::StrAppend(&text, "  output_", name, " [shape=box, style=bold, label=\"", name, "\"];\n");
  }
  for (const Node& node : graph.nodes()) {
    for (ValueId id : node.operands) {
      const Value& operand = graph.value(id);
      if (!operand.literal)
        AppendEdge(SourceOf(operand), absl::StrCat("call_", node.id.value), operand, &text);
    }
  }
  for (ValueId id : graph.outputs())
    AppendEdge(SourceOf(graph.value(id)), absl::StrCat("output_", graph.value(id).name), graph.value(id),
               &text);
  return absl::StrCat(text, "}\n");
}

}  // namespace fusion
