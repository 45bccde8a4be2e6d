#include "server/search/search.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/search/fusible_sets.h"
#include "server/search/kernel_identity.h"
#include "server/search/plain_vectors.h"
#include "server/skeletons/skeletons.h"

namespace fusion {
namespace {

// The covers of larger graphs have no time for sets of both ways of growth: with both the gap for 10,000
// operations on vectors was 26 % instead of 2 %.
constexpr int kMostNodesForBothGrowths = 2000;

constexpr int64_t kFewFusions = 64;
constexpr int kMoreToKeep = 3;  // times the implementations of a fusion

int LargestSize(const std::vector<NodeSet>& sets) {
  int most = 0;
  for (const NodeSet& set : sets) most = std::max(most, set.Size());
  return most;
}

// Values that are read and written where the largest of these sets that share no node are fused, and each
// other node is by itself. A set stands behind those on the way to it.
int64_t Traffic(const Graph& graph, const std::vector<NodeSet>& grown) {
  NodeSet fused;
  int64_t values = 0;
  std::vector<ValueId> loads, stores;
  const auto count = [&](const NodeSet& nodes) {
    FindLoadsAndStores(graph, nodes, &loads, &stores);
    values += static_cast<int64_t>(loads.size() + stores.size());
    fused.UnionWith(nodes);
  };
  for (auto set = grown.rbegin(); set != grown.rend(); ++set)
    if (!set->Intersects(fused)) count(*set);
  for (const Node& node : graph.nodes()) {
    if (fused.Contains(node.id.value)) continue;
    NodeSet alone;
    alone.Add(node.id.value);
    count(alone);
  }
  return values;
}

}  // namespace

absl::StatusOr<SearchSpace> SearchFusions(const Graph& graph, const SizeValues& sizes, const CostModel& model,
                                          const SearchOptions& options) {
  if (graph.node_count() > kMaxSearchedNodes)
    return absl::InvalidArgumentError(absl::StrCat("the graph has ", graph.node_count(),
                                                   " nodes; the search takes at most ", kMaxSearchedNodes));
  FusibleSetOptions set_options;
  set_options.max_nodes = std::min(options.max_fusion_nodes, graph.node_count());
  set_options.max_sets = std::max<int64_t>(options.max_fusions, graph.node_count());
  set_options.max_candidates = 20 * set_options.max_sets;
  const FusibleSetProblem problem = FusibleSetProblemOf(graph);
  FusibleSets sets = EnumerateFusibleSets(problem, set_options);

  SearchSpace space;
  space.fusible_sets = static_cast<int64_t>(sets.sets.size());
  space.complete = sets.limit == EnumerationLimit::kNone;
  if (!space.complete) {
    // The last size may be there in part.
    const int last = sets.sets.empty() ? 0 : sets.sets.back().Size();
    const int listed = sets.limit == EnumerationLimit::kMaxNodes || last <= 1 ? last : last - 1;
    std::vector<std::vector<NodeSet>> grown;
    for (Growth growth : {Growth::kLayers, Growth::kChains})
      grown.push_back(
          GrowFusibleSets(problem, growth, last, options.max_grown_nodes, set_options.max_sets / 4,
                          [&](const NodeSet& nodes) { return ChooseSkeleton(graph, nodes).feasible; }));
    const bool large = graph.node_count() > kMostNodesForBothGrowths;
    const bool chains = large && Traffic(graph, grown[1]) < Traffic(graph, grown[0]);
    if (large) grown.erase(grown.begin() + (chains ? 0 : 1));
    std::vector<NodeSet> more;
    std::set<NodeSet> known;
    for (std::vector<NodeSet>& way : grown)
      for (NodeSet& nodes : way)
        if (known.insert(nodes).second) more.push_back(std::move(nodes));
    space.notes.push_back(absl::StrCat(
        "not every fusible set was looked at (", EnumerationLimitName(sets.limit), "): all of ",
        listed > 1 ? absl::StrCat("up to ", listed, " nodes") : "one node", ", ", sets.sets.size(),
        " in all, and ", more.size(), " that were grown, of up to ", LargestSize(more), " nodes",
        !large   ? ""
        : chains ? ", as chains alone since the graph is so large"
                 : ", as layers alone since the graph is so large",
        (sets.limit == EnumerationLimit::kMaxSets || sets.limit == EnumerationLimit::kMaxCandidates) &&
                options.max_fusions < kMostFusions
            ? "; --max-fusions N looks at more"
            : ""));
    for (const NodeSet& group : options.together) {
      NodeSet closure = ConvexClosure(problem, group);
      if (std::find(sets.sets.begin(), sets.sets.end(), closure) == sets.sets.end() &&
          std::find(more.begin(), more.end(), closure) == more.end())
        more.push_back(std::move(closure));
    }
    space.fusible_sets += static_cast<int64_t>(more.size());
    std::move(more.begin(), more.end(), std::back_inserter(sets.sets));
  }
  space.unfused.assign(graph.node_count(), -1);
  // A small space can afford more of each fusion; which of them is best is for measurement to say.
  ImplementationOptions implementation_options = options.implementation;
  if (space.fusible_sets <= kFewFusions) implementation_options.keep *= kMoreToKeep;
  const KernelNames names(graph, sizes);
  if (model.memory())
    implementation_options.measured = [&](const NodeSet& nodes) {
      KernelIdentity identity = names.Of(nodes);
      return FamilyTimes(model.memory()->Find(identity.family), std::move(identity.sizes), model.residual());
    };
  // And the fusion of everything is worth it in a large one: it is there once, and mostly the fastest.
  ImplementationOptions whole_graph_options = implementation_options;
  whole_graph_options.keep = std::max(whole_graph_options.keep, kMoreToKeep * options.implementation.keep);
  std::optional<PlainVectors> plain_vectors;
  if (!implementation_options.wanted) plain_vectors.emplace(graph, sizes, model, implementation_options);
  for (const NodeSet& nodes : sets.sets) {
    const int size = nodes.Size();
    const size_t first = space.implementations.size();
    const bool whole_graph = size == graph.node_count();
    if (whole_graph || !plain_vectors || !plain_vectors->Implement(nodes, &space.implementations)) {
      std::string reason;
      std::vector<FusionImplementation> implementations = ImplementFusion(
          graph, nodes, sizes, model, whole_graph ? whole_graph_options : implementation_options, &reason);
      if (implementations.empty() && size == 1) {
        const Node& node = graph.node(NodeId{nodes.Members()[0]});
        return absl::InvalidArgumentError(absl::StrCat(
            graph.value(node.result).name, " = ", node.function->name, "(...): no kernel fits the device ",
            model.device().name(), ": ", reason.empty() ? "no skeleton computes it" : reason));
      }
      std::move(implementations.begin(), implementations.end(), std::back_inserter(space.implementations));
    }
    if (space.implementations.size() == first) continue;
    if (size == 1) space.unfused[nodes.Members()[0]] = static_cast<int>(first);
    if (static_cast<int>(space.fusions_by_size.size()) <= size) space.fusions_by_size.resize(size + 1);
    ++space.fusions_by_size[size];
  }
  return space;
}

}  // namespace fusion
