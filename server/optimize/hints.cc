#include "server/optimize/hints.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/rpc/status_details.h"
#include "base/status_macros.h"
#include "server/skeletons/skeletons.h"

namespace fusion {
namespace {

int Shared(const NodeSet& a, const NodeSet& b) {
  int count = 0;
  for (int node : a.Members()) count += b.Contains(node);
  return count;
}

absl::StatusOr<NodeSet> ResolveGroup(const Graph& graph, const v1::FusionHints::Group& group,
                                     const std::string& field) {
  std::vector<int> nodes;
  for (const std::string& value : group.values()) {
    const auto node = NodeNamed(graph, value);
    if (!node.ok()) return InvalidField(field, std::string(node.status().message()));
    nodes.push_back(node->value);
  }
  std::sort(nodes.rbegin(), nodes.rend());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  if (nodes.size() < 2)
    return InvalidField(
        field, absl::StrCat("names ", nodes.size(), " value", nodes.size() == 1 ? "" : "s", " (",
                            absl::StrJoin(group.values(), ","), "); it takes two or more different ones"));
  NodeSet set;
  for (int node : nodes) set.Add(node);
  return set;
}

// In their order. What stands in braces is one word, with single spaces.
std::vector<std::string> SplitWords(const std::string& text) {
  std::vector<std::string> words;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = text[at] == '{' ? text.find('}', at) : std::string::npos;
    if (end != std::string::npos) {
      const std::vector<std::string> names =
          absl::StrSplit(text.substr(at + 1, end - at - 1), absl::ByAnyChar(" \t\r\n,"), absl::SkipEmpty());
      words.push_back(absl::StrCat("{", absl::StrJoin(names, " "), "}"));
      at = end + 1;
      continue;
    }
    end = std::min(text.find_first_of(" \t\r\n()[],{", at + 1), text.size());
    const bool separates = absl::string_view(" \t\r\n()[],").find(text[at]) != absl::string_view::npos;
    if (!separates) words.push_back(text.substr(at, end - at));
    at = separates ? at + 1 : end;
  }
  return words;
}

}  // namespace

bool IsDescribedBy(const std::string& description, const std::string& text) {
  const std::vector<std::string> words = SplitWords(description);
  auto next = words.begin();
  for (const std::string& wanted : SplitWords(text)) {
    next = std::find(next, words.end(), wanted);
    if (next == words.end()) return false;
    ++next;
  }
  return true;
}

std::string WordsOf(const std::vector<std::string>& descriptions) {
  std::set<std::tuple<std::string, int, std::string>> words;  // without its number, the number, the word
  for (const std::string& description : descriptions) {
    const std::vector<std::string> split = SplitWords(description);
    for (size_t i = 0; i < split.size(); ++i) {
      if (split[i][0] == '{' || split[i] == "|") continue;
      std::string word = split[i];
      if (i + 1 < split.size() && absl::ascii_isdigit(split[i + 1][0]))
        absl::StrAppend(&word, " ", split[++i]);
      const size_t digit = std::min(word.find_first_of("0123456789"), word.size());
      int number = 0;
      (void)absl::SimpleAtoi(word.substr(digit), &number);
      words.insert({word.substr(0, digit), number, word});
    }
  }
  std::vector<std::string> shown;
  for (const auto& word : words) shown.push_back(std::get<2>(word));
  return absl::StrJoin(shown, ", ");
}

bool Hints::Allow(const NodeSet& kernel) const {
  for (const NodeSet& group : together)
    if (const int count = Shared(group, kernel); count != 0 && count != group.Size()) return false;
  return std::none_of(apart.begin(), apart.end(),
                      [&](const NodeSet& group) { return Shared(group, kernel) > 1; });
}

bool Hints::AllowMaking(const Graph& graph, const FusionImplementation& kernel) const {
  std::string description;
  for (const Implementation& wanted : implementations) {
    if (!kernel.fusion.nodes.Contains(wanted.node)) continue;
    if (description.empty()) description = Describe(graph, kernel);
    if (!IsDescribedBy(description, wanted.text)) return false;
  }
  return true;
}

bool Hints::Allow(const Graph& graph, const FusionImplementation& kernel) const {
  return Allow(kernel.fusion.nodes) && AllowMaking(graph, kernel);
}

absl::StatusOr<Hints> ResolveHints(const Graph& graph, const v1::FusionHints& hints) {
  Hints resolved;
  for (const auto& group : hints.together()) {
    FUSION_ASSIGN_OR_RETURN(auto set, ResolveGroup(graph, group, "hints.together"));
    resolved.together.push_back(std::move(set));
  }
  for (const auto& group : hints.apart()) {
    FUSION_ASSIGN_OR_RETURN(auto set, ResolveGroup(graph, group, "hints.apart"));
    resolved.apart.push_back(std::move(set));
  }
  for (const auto& implementation : hints.implementations()) {
    const auto node = NodeNamed(graph, implementation.value());
    if (!node.ok()) return InvalidField("hints.implementations", std::string(node.status().message()));
    if (SplitWords(implementation.text()).empty())
      return InvalidField("hints.implementations",
                          absl::StrCat("says nothing of the kernel that computes ", implementation.value()));
    resolved.implementations.push_back({node->value, implementation.text()});
  }
  return resolved;
}

absl::StatusOr<NodeId> NodeNamed(const Graph& graph, const std::string& name) {
  for (const Value& value : graph.values()) {
    if (value.literal || value.name != name) continue;
    if (value.producer) return *value.producer;
    return absl::InvalidArgumentError(absl::StrCat(name, " is an input: no kernel computes it"));
  }
  return absl::InvalidArgumentError(absl::StrCat("the graph has no value ", name));
}

std::vector<std::string> ResultNames(const Graph& graph, const NodeSet& nodes) {
  std::vector<std::string> names;
  for (int node : nodes.Members()) names.push_back(graph.value(graph.node(NodeId{node}).result).name);
  return names;
}

}  // namespace fusion
