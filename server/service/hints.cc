#include "server/service/hints.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/service/status_conversion.h"

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

}  // namespace

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
    if (description.empty()) description = kernel.Describe(graph);
    if (!absl::StrContains(description, wanted.text)) return false;
  }
  return true;
}

bool Hints::Allow(const Graph& graph, const FusionImplementation& kernel) const {
  return Allow(kernel.fusion.nodes) && AllowMaking(graph, kernel);
}

absl::StatusOr<Hints> ResolveHints(const Graph& graph, const v1::FusionHints& hints) {
  Hints resolved;
  for (const auto& group : hints.together()) {
    auto set = ResolveGroup(graph, group, "hints.together");
    if (!set.ok()) return set.status();
    resolved.together.push_back(*std::move(set));
  }
  for (const auto& group : hints.apart()) {
    auto set = ResolveGroup(graph, group, "hints.apart");
    if (!set.ok()) return set.status();
    resolved.apart.push_back(*std::move(set));
  }
  for (const auto& implementation : hints.implementations()) {
    const auto node = NodeNamed(graph, implementation.value());
    if (!node.ok()) return InvalidField("hints.implementations", std::string(node.status().message()));
    if (implementation.text().empty())
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
