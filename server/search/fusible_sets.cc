#include "server/search/fusible_sets.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "server/graph/reachability.h"

namespace fusion {
namespace {

using Members = std::vector<int>;  // ascending

NodeSet SetOf(const Members& members) {
  NodeSet set;
  for (auto member = members.rbegin(); member != members.rend(); ++member) set.Add(*member);
  return set;
}

// Grows sets level by level: those of k + 1 nodes are those of k nodes plus one adjacent node that keeps them
// convex.
//
// This misses nothing: every convex connected set S of two or more nodes contains a v such that S - v is
// convex and connected. Take the adjacency graph of S (edges of both kinds). If it has no cut vertex, let v
// be any source of the subgraph of S. Otherwise take a leaf block with its one cut vertex c. Restricted to
// the block the data edges are acyclic, so the block has a source and a sink, different when it has a data
// edge, and any node is both when it has none: one of them is a v != c. All edges of v lie in the block, so v
// is a source or sink of all of S, and S - v is connected. Removing a source v keeps a set convex: a path
// that leaves S - v and comes back would pass through v itself, for S is convex, and so enter v from S, but a
// source has no such edge. Sinks likewise.
//
// By the same argument may_extend, false for all supersets of what it refuses, cuts off no wanted set.
class Enumerator {
 public:
  Enumerator(const FusibleSetProblem& problem, const FusibleSetOptions& options)
      : options_(options),
        sharing_groups_(problem.sharing_groups),
        successors_(problem.successors),
        reachability_(problem.successors),
        joined_by_edge_(JoinedByEdge(problem)),
        groups_of_(GroupsOfNodes(problem)) {}

  FusibleSets Run() {
    std::vector<Members> level;
    for (int node = 0; node < static_cast<int>(joined_by_edge_.size()); ++node) Offer({node}, level);
    for (int size = 1; !level.empty(); ++size) {
      std::sort(level.begin(), level.end());
      for (const Members& members : level) result_.sets.push_back(SetOf(members));
      if (result_.limit != EnumerationLimit::kNone) return std::move(result_);
      std::vector<Members> next;
      Extend(level, next, size == options_.max_nodes);
      if (size == options_.max_nodes) {
        if (!next.empty() || result_.limit != EnumerationLimit::kNone)
          result_.limit = EnumerationLimit::kMaxNodes;
        return std::move(result_);
      }
      level = std::move(next);
    }
    return std::move(result_);
  }

  std::vector<NodeSet> Grow(Growth growth, int larger_than, int max_nodes, int64_t max_sets,
                            const std::function<bool(const NodeSet&)>& may_join) const {
    const std::vector<int> order = growth == Growth::kChains ? ChainOrder() : NumberOrder();
    std::vector<int> rank(order.size());
    for (size_t i = 0; i < order.size(); ++i) rank[order[i]] = static_cast<int>(i);
    std::vector<NodeSet> grown;
    NodeSet done;
    for (int seed : order) {
      if (done.Contains(seed)) continue;
      if (static_cast<int64_t>(grown.size()) >= max_sets) break;
      Members members = {seed};
      NodeSet set = SetOf(members), refused = done, closed;
      const size_t before = grown.size();
      int next_size = larger_than + 1;
      while (static_cast<int>(members.size()) < max_nodes &&
             JoinOne(growth, rank, may_join, &members, &set, &refused)) {
        if (growth == Growth::kChains && !IsClosed(members, set, refused)) continue;
        closed = set;
        if (static_cast<int>(members.size()) < next_size) continue;
        grown.push_back(set);
        next_size = static_cast<int>(members.size()) * 4 / 3 + 1;
      }
      if (closed.Size() > larger_than) set = std::move(closed);
      if (set.Size() > larger_than && (grown.size() == before || !(grown.back() == set)))
        grown.push_back(set);
      done.UnionWith(set);
    }
    return grown;
  }

 private:
  std::vector<int> NumberOrder() const {
    std::vector<int> order(successors_.size());
    std::iota(order.begin(), order.end(), 0);
    return order;
  }

  // Every node after its predecessors, and as soon as possible after the last of them: depth first, of
  // several predecessors the one with the longest path to it first. Where statements stand in the source
  // makes no difference but between equals.
  std::vector<int> ChainOrder() const {
    const int count = static_cast<int>(successors_.size());
    std::vector<std::vector<int>> predecessors(count);
    std::vector<int> depth(count), order;
    for (int node = 0; node < count; ++node)
      for (int next : successors_[node]) {
        predecessors[next].push_back(node);
        depth[next] = std::max(depth[next], depth[node] + 1);
      }
    const auto deeper = [&](int a, int b) { return depth[a] != depth[b] ? depth[a] > depth[b] : a < b; };
    for (std::vector<int>& nodes : predecessors) std::sort(nodes.begin(), nodes.end(), deeper);
    std::vector<bool> seen(count);
    std::vector<std::pair<int, size_t>> path;  // a node, and how many of its predecessors are done
    for (int sink = 0; sink < count; ++sink) {
      if (!successors_[sink].empty()) continue;
      for (path.emplace_back(sink, 0); !path.empty();) {
        const auto [node, tried] = path.back();
        if (tried < predecessors[node].size()) {
          ++path.back().second;
          if (const int next = predecessors[node][tried]; !seen[next]) {
            seen[next] = true;
            path.emplace_back(next, 0);
          }
          continue;
        }
        order.push_back(node);
        path.pop_back();
      }
    }
    return order;
  }

  // Returns whether all that the members depend on is among them, or done or refused: else a node that is
  // left behind may find none to join.
  bool IsClosed(const Members& members, const NodeSet& set, const NodeSet& refused) const {
    return std::all_of(members.begin(), members.end(), [&](int member) {
      const std::vector<int>& joined = joined_by_edge_[member];
      return std::all_of(joined.begin(), joined.end(), [&](int other) {
        return set.Contains(other) || refused.Contains(other) ||
               !reachability_.ancestors(member).Contains(other);
      });
    });
  }

  // Adds the first node that may join; those that may not stay out.
  bool JoinOne(Growth growth, const std::vector<int>& rank,
               const std::function<bool(const NodeSet&)>& may_join, Members* members, NodeSet* set,
               NodeSet* refused) const {
    NodeSet below, above;
    FindOutside(*members, &below, &above);
    std::vector<int> nodes = NeighboursOf(*members, *set);
    std::sort(nodes.begin(), nodes.end(), [&](int a, int b) { return rank[a] < rank[b]; });
    if (growth == Growth::kChains)
      std::stable_partition(nodes.begin(), nodes.end(), [&](int node) {
        const std::vector<int>& joined = joined_by_edge_[node];
        return std::any_of(joined.begin(), joined.end(), [&](int other) { return set->Contains(other); });
      });
    for (int node : nodes) {
      if (refused->Contains(node) || !StaysConvex(node, below, above)) continue;
      NodeSet extended = *set;
      extended.Add(node);
      if (!may_join(extended)) {
        refused->Add(node);
        continue;
      }
      members->insert(std::upper_bound(members->begin(), members->end(), node), node);
      *set = std::move(extended);
      return true;
    }
    return false;
  }

  static std::vector<std::vector<int>> JoinedByEdge(const FusibleSetProblem& problem) {
    std::vector<std::vector<int>> joined(problem.successors.size());
    for (size_t from = 0; from < problem.successors.size(); ++from) {
      for (int to : problem.successors[from]) {
        joined[from].push_back(to);
        joined[to].push_back(static_cast<int>(from));
      }
    }
    return joined;
  }

  static std::vector<std::vector<int>> GroupsOfNodes(const FusibleSetProblem& problem) {
    std::vector<std::vector<int>> groups(problem.successors.size());
    for (size_t group = 0; group < problem.sharing_groups.size(); ++group)
      for (int node : problem.sharing_groups[group]) groups[node].push_back(static_cast<int>(group));
    return groups;
  }

  // Takes a convex connected set, seen for the first time, into the next level if it is wanted and within the
  // limits.
  void Offer(Members members, std::vector<Members>& level) {
    if (options_.may_extend && !options_.may_extend(SetOf(members))) return;
    if (static_cast<int64_t>(result_.sets.size() + level.size()) >= options_.max_sets) {
      result_.limit = EnumerationLimit::kMaxSets;
      return;
    }
    level.push_back(std::move(members));
  }

  // All wanted sets with one node more than those of `level`; the first one only when `any` is set. Stops at
  // a limit.
  void Extend(const std::vector<Members>& level, std::vector<Members>& next, bool any) {
    absl::flat_hash_set<Members> seen;
    for (const Members& members : level) {
      const NodeSet set = SetOf(members);
      NodeSet below, above;
      FindOutside(members, &below, &above);
      for (int node : NeighboursOf(members, set)) {
        if (++candidates_ > options_.max_candidates) {
          result_.limit = EnumerationLimit::kMaxCandidates;
          return;
        }
        if (!StaysConvex(node, below, above)) continue;
        Members extended = members;
        extended.insert(std::upper_bound(extended.begin(), extended.end(), node), node);
        if (!seen.insert(extended).second) continue;
        Offer(std::move(extended), next);
        if (result_.limit != EnumerationLimit::kNone || (any && !next.empty())) return;
      }
    }
  }

  // Nodes outside the set that descend from it, and of which it descends.
  void FindOutside(const Members& members, NodeSet* below, NodeSet* above) const {
    for (int member : members) {
      below->UnionWith(reachability_.descendants(member));
      above->UnionWith(reachability_.ancestors(member));
    }
    for (int member : members) {
      below->Remove(member);
      above->Remove(member);
    }
  }
  // The set is convex, so a node is not both above and below, and neither when a shared value alone joins it.
  bool StaysConvex(int node, const NodeSet& below, const NodeSet& above) const {
    return !(below.Contains(node) && below.Intersects(reachability_.ancestors(node))) &&
           !(above.Contains(node) && above.Intersects(reachability_.descendants(node)));
  }

  // Ascending, each once.
  std::vector<int> NeighboursOf(const Members& members, const NodeSet& set) const {
    std::vector<int> nodes;
    std::vector<int> groups;
    auto append = [&](const std::vector<int>& more) {
      for (int node : more)
        if (!set.Contains(node)) nodes.push_back(node);
    };
    for (int member : members) {
      append(joined_by_edge_[member]);
      groups.insert(groups.end(), groups_of_[member].begin(), groups_of_[member].end());
    }
    std::sort(groups.begin(), groups.end());
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    for (int group : groups) append(sharing_groups_[group]);
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
  }

  const FusibleSetOptions& options_;
  // Adjacency by shared values stays in groups: written out it would be quadratic for a value that all nodes
  // read.
  const std::vector<std::vector<int>>& sharing_groups_;
  const std::vector<std::vector<int>>& successors_;
  const Reachability reachability_;
  const std::vector<std::vector<int>> joined_by_edge_;
  const std::vector<std::vector<int>> groups_of_;
  FusibleSets result_;
  int64_t candidates_ = 0;
};

// For graphs too large to ask who reaches whom.
FusibleSets SingleNodes(int count, const FusibleSetOptions& options) {
  FusibleSets result;
  result.limit = EnumerationLimit::kGraphTooLarge;
  for (int node = 0; node < count && node < options.max_sets; ++node) {
    NodeSet set = SetOf({node});
    if (!options.may_extend || options.may_extend(set)) result.sets.push_back(std::move(set));
  }
  return result;
}

}  // namespace

const char* EnumerationLimitName(EnumerationLimit limit) {
  switch (limit) {
    case EnumerationLimit::kNone:
      return "none";
    case EnumerationLimit::kMaxNodes:
      return "max_nodes";
    case EnumerationLimit::kMaxSets:
      return "max_sets";
    case EnumerationLimit::kMaxCandidates:
      return "max_candidates";
    case EnumerationLimit::kGraphTooLarge:
      return "graph_too_large";
  }
  return "unknown";
}

FusibleSets EnumerateFusibleSets(const FusibleSetProblem& problem, const FusibleSetOptions& options) {
  assert(options.max_nodes >= 1 && options.max_sets >= 1);
  if (problem.successors.size() > kMaxReachabilityNodes)
    return SingleNodes(static_cast<int>(problem.successors.size()), options);
  return Enumerator(problem, options).Run();
}

std::vector<NodeSet> GrowFusibleSets(const FusibleSetProblem& problem, Growth growth, int larger_than,
                                     int max_nodes, int64_t max_sets,
                                     const std::function<bool(const NodeSet&)>& may_join) {
  if (problem.successors.size() > kMaxReachabilityNodes) return {};
  return Enumerator(problem, {}).Grow(growth, larger_than, max_nodes, max_sets, may_join);
}

NodeSet ConvexClosure(const FusibleSetProblem& problem, const NodeSet& nodes) {
  if (problem.successors.size() > kMaxReachabilityNodes) return {};
  const Reachability reachability(problem.successors);
  NodeSet closure = nodes;
  for (int node = 0; node < static_cast<int>(problem.successors.size()); ++node)
    if (reachability.ancestors(node).Intersects(nodes) && reachability.descendants(node).Intersects(nodes))
      closure.Add(node);
  return closure;
}

FusibleSets EnumerateFusibleSets(const Graph& graph, const FusibleSetOptions& options) {
  return EnumerateFusibleSets(FusibleSetProblemOf(graph), options);
}

FusibleSetProblem FusibleSetProblemOf(const Graph& graph) {
  FusibleSetProblem problem;
  problem.successors.resize(graph.node_count());
  for (const Node& node : graph.nodes())
    for (NodeId next : graph.successors(node.id)) problem.successors[node.id.value].push_back(next.value);
  for (const Value& value : graph.values()) {
    if (value.literal || value.type.is_scalar() || value.consumers.size() < 2) continue;
    std::vector<int> group;
    for (NodeId consumer : value.consumers) group.push_back(consumer.value);
    problem.sharing_groups.push_back(std::move(group));
  }
  return problem;
}

}  // namespace fusion
