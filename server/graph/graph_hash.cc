// The graph is written as text in a canonical numbering and the text is hashed. Numbering: inputs in order,
// then nodes in the order in which a depth-first walk from the outputs, operands in order, completes them.
// Outputs and operands are ordered, so equal structures get equal numbers whatever their statements were
// called and however they were sorted.
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/sha256.h"
#include "server/graph/deterministic_bytes.h"
#include "server/graph/graph.h"

namespace fusion {
namespace {

// Changes when the canonical text does.
constexpr char kVersion[] = "fusion graph 1\n";

class CanonicalText {
 public:
  explicit CanonicalText(const Graph& graph)
      : graph_(graph), numbers_(graph.values().size(), -1), text_(kVersion) {
    for (const v1::FunctionDefinition& definition : graph.catalog().definitions())
      definitions_.emplace(definition.name(), &definition);
  }

  std::string Write() {
    for (ValueId input : graph_.inputs()) {
      numbers_[input.value] = next_number_++;
      absl::StrAppend(&text_, "input ", TypeText(graph_.value(input)), "\n");
    }
    for (ValueId output : graph_.outputs())
      if (graph_.value(output).producer) Walk(*graph_.value(output).producer);
    for (const Node& node : graph_.nodes()) Walk(node.id);
    for (ValueId output : graph_.outputs()) {
      absl::StrAppend(&text_, "output ", numbers_[output.value]);
      if (const std::optional<ValueId> input = graph_.value(output).memory_of)
        absl::StrAppend(&text_, " into ", numbers_[input->value]);
      text_ += '\n';
    }
    return std::move(text_);
  }

 private:
  // Writes `root` and what it needs, producers first. Iterative: graphs may be deep.
  void Walk(NodeId root) {
    if (numbers_[graph_.node(root).result.value] >= 0) return;
    std::vector<std::pair<NodeId, size_t>> stack = {{root, 0}};
    while (!stack.empty()) {
      auto& [id, next] = stack.back();
      const Node& node = graph_.node(id);
      if (numbers_[node.result.value] >= 0) {
        stack.pop_back();
      } else if (next < node.operands.size()) {
        const Value& operand = graph_.value(node.operands[next++]);
        if (operand.producer && numbers_[operand.id.value] < 0) stack.push_back({*operand.producer, 0});
      } else {
        WriteNode(node);
        stack.pop_back();
      }
    }
  }

  void WriteNode(const Node& node) {
    numbers_[node.result.value] = next_number_++;
    absl::StrAppend(&text_, "call ", FunctionNumber(*node.function), " ",
                    node.overload - node.function->overloads.data());
    for (int parameter : node.static_parameters) absl::StrAppend(&text_, " <", parameter, ">");
    for (ValueId id : node.operands) {
      const Value& operand = graph_.value(id);
      if (operand.literal) {
        uint64_t bits = 0;
        std::memcpy(&bits, &*operand.literal, sizeof(bits));
        absl::StrAppend(&text_, " literal:", absl::Hex(bits), ":", TypeText(operand));
      } else {
        absl::StrAppend(&text_, " ", numbers_[id.value]);
      }
    }
    absl::StrAppend(&text_, " -> ", TypeText(graph_.value(node.result)), "\n");
  }

  // A function is written out, with its routines, where it is first used.
  int FunctionNumber(const ElementaryFunction& function) {
    auto [it, is_new] = functions_.try_emplace(&function, static_cast<int>(functions_.size()));
    if (is_new) {
      auto definition = definitions_.find(function.name);
      absl::StrAppend(&text_, "function ",
                      Sha256Hex(definition == definitions_.end() ? function.name
                                                                 : DeterministicBytes(*definition->second)),
                      " ", Sha256Hex(function.source), "\n");
    }
    return it->second;
  }

  std::string ExtentText(const Extent& extent) {
    return extent.name.empty()
               ? absl::StrCat("[", extent.constant, "]")
               : absl::StrCat("[s",
                              sizes_.try_emplace(extent.name, static_cast<int>(sizes_.size())).first->second,
                              "]");
  }
  std::string TypeText(const Value& value) {
    const Type& type = value.type;
    std::string text = absl::StrCat(type.data_type == v1::F64 ? "f64" : "f32", type.mapped ? " mapped" : "");
    for (int extent : type.element_shape) absl::StrAppend(&text, " ", extent);
    if (type.mapped) return text;
    for (const Extent& extent : type.extents) absl::StrAppend(&text, " ", ExtentText(extent));
    if (value.leading_dimension) absl::StrAppend(&text, " ld ", ExtentText(*value.leading_dimension));
    return text;
  }

  const Graph& graph_;
  std::vector<int> numbers_;  // of each value; -1: not written yet
  std::string text_;
  int next_number_ = 0;
  std::map<absl::string_view, const v1::FunctionDefinition*> definitions_;
  absl::flat_hash_map<const ElementaryFunction*, int> functions_;
  absl::flat_hash_map<std::string, int> sizes_;
};

}  // namespace

std::string GraphHash(const Graph& graph) {
  return absl::StrCat("sha256:", Sha256Hex(CanonicalText(graph).Write()).substr(0, 16));
}

}  // namespace fusion
