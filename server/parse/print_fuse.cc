#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/parse/input_values.h"
#include "server/parse/parse.h"
#include "server/parse/syntax.h"

namespace fusion {
namespace {

constexpr size_t kLineWidth = 100;

// "FIRST a, b, c;" in lines of at most kLineWidth characters where the names allow it.
void AppendList(const std::string& first, const std::vector<std::string>& names, std::string* text) {
  std::string line = first;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string item = absl::StrCat(names[i], i + 1 < names.size() ? "," : ";");
    if (i > 0 && line.size() + 1 + item.size() > kLineWidth) {
      absl::StrAppend(text, line, "\n");
      line = absl::StrCat("   ", " ", item);
    } else {
      absl::StrAppend(&line, " ", item);
    }
  }
  absl::StrAppend(text, line, "\n");
}

// With what is asked of their values, where they are inputs, or with the inputs whose memory they take.
std::vector<std::string> Names(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  for (ValueId id : ids) {
    const Value& value = graph.value(id);
    names.push_back(absl::StrCat(
        value.name, InputValuesText(value.values),
        value.memory_of ? absl::StrCat(" ", kIntoWord, " ", graph.value(*value.memory_of).name) : ""));
  }
  return names;
}

// "mmul<3,3>" would repeat what the operands say, so the plain name is printed.
std::string CallText(const Graph& graph, const Node& node) {
  std::string text = absl::StrCat(graph.value(node.result).name, " = ", node.function->name, "(");
  for (size_t i = 0; i < node.operands.size(); ++i)
    absl::StrAppend(&text, i ? ", " : "", graph.value(node.operands[i]).name);
  return absl::StrCat(text, ");\n");
}

}  // namespace

bool HasInlineFunctions(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return node.function->is_inline; });
}

std::string PrintFuse(const Graph& graph) {
  std::string text;
  for (const Size& size : graph.sizes()) {
    if (size.name == kElementsSize && size.default_value == kDefaultElements) continue;
    absl::StrAppend(&text, "size ", size.name);
    if (size.default_value) absl::StrAppend(&text, " = ", *size.default_value);
    absl::StrAppend(&text, ";\n");
  }
  if (!text.empty()) text += '\n';

  // One declaration for each type, in the order of first use.
  std::vector<std::string> types;
  std::map<std::string, std::vector<std::string>> names;
  for (const Value& value : graph.values()) {
    if (value.literal) continue;
    std::string type = DeclaredType(value);
    std::vector<std::string>& of_type = names[type];
    if (of_type.empty()) types.push_back(std::move(type));
    of_type.push_back(value.name);
  }
  for (const std::string& type : types) AppendList(type, names[type], &text);
  text += '\n';
  if (!graph.inputs().empty()) {
    AppendList("input", Names(graph, graph.inputs()), &text);
    text += '\n';
  }
  for (const Node& node : graph.nodes()) text += CallText(graph, node);
  text += '\n';
  AppendList("return", Names(graph, graph.outputs()), &text);
  return text;
}

}  // namespace fusion
