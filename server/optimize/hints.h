// Hints are what a person asks of the covers: values that one kernel computes, values that different kernels
// compute, and how a kernel is made.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/optimizer.pb.h"
#include "server/graph/graph.h"
#include "server/graph/node_set.h"
#include "server/plan/plan.h"

namespace fusion {

struct Hints {
  std::vector<NodeSet> together;  // a kernel computes all of them, or none
  std::vector<NodeSet> apart;     // a kernel computes one of them at most
  struct Implementation {
    int node = 0;
    std::string text;  // words of the description of the kernel that computes it, see IsDescribedBy
  };
  std::vector<Implementation> implementations;

  bool empty() const { return together.empty() && apart.empty() && implementations.empty(); }
  bool Allow(const NodeSet& kernel) const;
  // Returns whether the kernel is made as asked for; says nothing of what it computes.
  bool AllowMaking(const Graph& graph, const FusionImplementation& kernel) const;
  // Returns whether both hold.
  bool Allow(const Graph& graph, const FusionImplementation& kernel) const;
};

// InvalidArgument has the field and names the value: one that the graph does not have or does not compute, a
// group of fewer than two different ones, or an implementation without a text.
absl::StatusOr<Hints> ResolveHints(const Graph& graph, const v1::FusionHints& hints);

// Returns whether a kernel's description has the words of `text`, each whole and in this order; others may
// stand between them. T25 is not T256. "{q s}" is one word, so that names of values are not taken for others;
// parentheses, brackets and commas are no words.
bool IsDescribedBy(const std::string& description, const std::string& text);

// Returns the words of descriptions that can be asked for, each once, those with numbers by number: "atomic,
// C5, C20, T256". Numbers alone stand behind the word before them ("cluster 2"); names of values are left
// out.
std::string WordsOf(const std::vector<std::string>& descriptions);

// Returns the node that computes a value. InvalidArgument: there is no such value, or it is an input.
absl::StatusOr<NodeId> NodeNamed(const Graph& graph, const std::string& value);

// Returns the names of the values that the nodes compute, in the order of the nodes.
std::vector<std::string> ResultNames(const Graph& graph, const NodeSet& nodes);

}  // namespace fusion
