#include "server/search/implementation_choice.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "server/search/kernel_identity.h"
#include "server/skeletons/skeletons.h"

namespace fusion {
namespace {

// The best predicted half of `keep`, and of each structure in turn the next best. Order is kept.
void KeepDifferent(int keep, std::vector<FusionImplementation>* all) {
  if (static_cast<int>(all->size()) <= keep) return;
  std::map<Structure, std::vector<size_t>> structures;
  std::vector<bool> chosen(all->size(), false);
  int count = 0;
  for (size_t i = 0; i < all->size(); ++i) {
    const FusionImplementation& implementation = (*all)[i];
    if (count < (keep + 1) / 2) {
      chosen[i] = true;
      ++count;
      continue;
    }
    structures[StructureOf(implementation)].push_back(i);
  }
  for (size_t turn = 0; count < keep; ++turn)
    for (const auto& [structure, members] : structures)
      if (turn < members.size() && count < keep) {
        chosen[members[turn]] = true;
        ++count;
      }
  std::vector<FusionImplementation> kept;
  for (size_t i = 0; i < all->size(); ++i)
    if (chosen[i]) kept.push_back(std::move((*all)[i]));
  *all = std::move(kept);
}

// Returns the bytes of the graph's inputs that the kernel reads and the outputs that it writes.
double FloorBytes(const Graph& graph, const FusionImplementation& implementation, const SizeValues& sizes) {
  double bytes = 0;
  for (ValueId id : implementation.loads)
    if (const Value& value = graph.value(id); !value.producer && !value.literal)
      bytes += static_cast<double>(value.type.Bytes(sizes));
  for (ValueId id : implementation.stores)
    if (std::find(graph.outputs().begin(), graph.outputs().end(), id) != graph.outputs().end())
      bytes += static_cast<double>(graph.value(id).type.Bytes(sizes));
  return bytes;
}

}  // namespace

std::vector<FusionImplementation> ImplementFusion(const Graph& graph, const NodeSet& nodes,
                                                  const SizeValues& sizes, const CostModel& model,
                                                  const ImplementationOptions& options, std::string* reason) {
  SkeletonAnswer answer = ChooseSkeleton(graph, nodes);
  FusionProblem problem{.graph = graph,
                        .nodes = nodes,
                        .max_combinations = options.max_combinations,
                        .deterministic = options.deterministic};
  if (answer.feasible)
    problem.loop.emplace(ShapeOfFusion(graph, nodes, sizes, model, std::move(answer)));
  else
    *reason = std::move(answer.reason);
  if (model.target().simt())
    for (auto& [sweep, own] : SplitIntoSweeps(graph, nodes))
      problem.sweeps.push_back(ShapeOfFusion(graph, sweep, sizes, model, std::move(own)));
  std::vector<FusionImplementation> all;
  NearestMiss miss;
  for (const Skeleton* skeleton : Skeletons()) skeleton->Configure(problem, &all, &miss);
  if (!miss.text().empty()) *reason = miss.text();
  const FamilyTimes measured = options.measured && !all.empty() ? options.measured(nodes) : FamilyTimes();
  for (FusionImplementation& implementation : all) {
    implementation.estimate.floor_bytes = FloorBytes(graph, implementation, sizes);
    if (!measured.empty())
      model.Correct(measured, VariantOf(graph, implementation), FeaturesOf(implementation),
                    &implementation.estimate);
    else
      model.Correct(model.residual().jobs() > 0 ? FeaturesOf(implementation) : ResidualFeatures{},
                    &implementation.estimate);
  }
  std::stable_sort(all.begin(), all.end(), [](const FusionImplementation& a, const FusionImplementation& b) {
    return a.estimate.total_seconds < b.estimate.total_seconds;
  });
  std::vector<FusionImplementation> wanted;
  if (options.wanted) {
    std::copy_if(all.begin(), all.end(), std::back_inserter(wanted), options.wanted);
    if (nodes.Size() > 1) all = std::exchange(wanted, {});
    if (static_cast<int>(wanted.size()) > options.keep) wanted.resize(options.keep);
    if (all.empty()) *reason = "no implementation is as asked for";
  }
  constexpr double kHopeless = 4;  // times the best prediction
  while (!all.empty() && all.back().estimate.total_seconds > kHopeless * all.front().estimate.total_seconds)
    all.pop_back();
  KeepDifferent(options.keep, &all);
  for (FusionImplementation& implementation : wanted) {
    const auto same = [&](const FusionImplementation& other) {
      return VariantOf(graph, other) == VariantOf(graph, implementation) &&
             Describe(graph, other) == Describe(graph, implementation);
    };
    if (std::any_of(all.begin(), all.end(), same)) continue;
    const auto place = std::upper_bound(all.begin(), all.end(), implementation,
                                        [](const FusionImplementation& a, const FusionImplementation& b) {
                                          return a.estimate.total_seconds < b.estimate.total_seconds;
                                        });
    all.insert(place, std::move(implementation));
  }
  return all;
}

}  // namespace fusion
