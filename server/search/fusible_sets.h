// Fusible sets: the sets of nodes that one kernel may compute (Fousek 2010, sections 4.2.2 and 4.3.1).
//
// A fusible set is convex (no path leaves it and comes back) and connected. Two nodes are adjacent when an
// edge joins them, or when they read the same value: in BiCGK two products read the same matrix and nothing
// else joins them. A set may have any number of outputs (Fousek 2010 allows one).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "server/graph/graph.h"
#include "server/graph/node_set.h"

namespace fusion {

// The enumeration needs this of a graph.
struct FusibleSetProblem {
  std::vector<std::vector<int>> successors;      // of a DAG, nodes in a topological order
  std::vector<std::vector<int>> sharing_groups;  // nodes that read the same value
};

struct FusibleSetOptions {
  int max_nodes = 12;          // of one set
  int64_t max_sets = 100'000;  // returned
  // Sets looked at, wanted or not: bounds the time when may_extend refuses nearly all of very many.
  int64_t max_candidates = 10'000'000;
  // False: neither this set nor any superset of it is wanted. An empty function wants all sets. It is called
  // at most once per set, for convex connected sets only.
  std::function<bool(const NodeSet&)> may_extend;
};

// The limit that left sets out.
enum class EnumerationLimit {
  kNone,           // the list is complete
  kMaxNodes,       // larger sets exist (or were too many to look at); complete up to max_nodes
  kMaxSets,        // complete up to the size before that of the last set
  kMaxCandidates,  // likewise
  kGraphTooLarge,  // more than kMaxReachabilityNodes nodes: single nodes only
};
const char* EnumerationLimitName(EnumerationLimit limit);  // "none", "max_nodes", ...

// Above this many nodes the reachability bit vectors (nodes^2 / 4 bytes) are not built.
inline constexpr int kMaxReachabilityNodes = 20'000;

struct FusibleSets {
  std::vector<NodeSet> sets;  // by size, then by members in lexicographic order; each once
  EnumerationLimit limit = EnumerationLimit::kNone;
};

// Returns all fusible sets within the limits. Time: sets * (adjacent nodes) * nodes / 64. Requires max_nodes
// >= 1, max_sets >= 1, indices in range, and nodes in topological order. Thread safe.
FusibleSets EnumerateFusibleSets(const FusibleSetProblem& problem, const FusibleSetOptions& options);

// Enumerates the sets of a graph; node i is NodeId{i}. A shared literal or scalar does not connect: it costs
// no traffic to speak of.
FusibleSets EnumerateFusibleSets(const Graph& graph, const FusibleSetOptions& options);
FusibleSetProblem FusibleSetProblemOf(const Graph& graph);

// The order in which nodes are taken, as seeds and of those adjacent to a set. Layers: by number. Chains:
// depth first, each node soon after what it depends on, and one that an edge joins before one that only reads
// the same value; where statements stand in the source matters between equals alone.
enum class Growth { kLayers, kChains };

// Returns the smallest convex set that holds `nodes`, which may be unconnected; an empty one for more than
// kMaxReachabilityNodes nodes.
NodeSet ConvexClosure(const FusibleSetProblem& problem, const NodeSet& nodes);

// Returns large fusible sets, for graphs whose sets are too many to list. From each node in turn that is in
// no set so far, a set grows by the first adjacent node that is in no set either, keeps it convex and is let
// in by `may_join` (asked of the set with the node), until there is none or it has `max_nodes`; a chain then
// gives back the last nodes, so that it depends on nothing that comes later. The result has that set and some
// of the sets on the way: each a third larger than the one before. Sets of `larger_than` nodes or fewer, and
// all after `max_sets`, are left out. It is empty for more than kMaxReachabilityNodes nodes. Deterministic.
std::vector<NodeSet> GrowFusibleSets(const FusibleSetProblem& problem, Growth growth, int larger_than,
                                     int max_nodes, int64_t max_sets,
                                     const std::function<bool(const NodeSet&)>& may_join);

}  // namespace fusion
