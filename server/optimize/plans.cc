#include "server/optimize/plans.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/rpc/status_details.h"
#include "base/status_macros.h"
#include "server/skeletons/skeletons.h"

namespace fusion {
namespace {

// The covers of a whole job may take so long; a submission may ask for less through its own time limit.
constexpr std::chrono::seconds kCoverTimeLimit(20);
constexpr std::chrono::seconds kOtherCoversTimeLimit(1);
// Graphs of so few nodes have all their fusible sets looked at, of any size, as far as there are no more than
// this: Black-Scholes, 24 nodes, has 4,116 (35 us of processor time a set). More sets of larger graphs
// gain nothing beside those that grow: with 20,000 instead of 4,000 the best cover of 300 operations on
// vectors was 0.01 % faster, that of 1,000 slower, since covers took all the time.
constexpr int kFewNodes = 64;
constexpr int64_t kFusionsOfFewNodes = 10'000;
// Unfused covers that compete to be the baseline.
constexpr int kUnfusedVariants = 4;

// Every node by itself, in the order of the nodes, with its variant-th best predicted implementation (or its
// last).
CoverSolution UnfusedVariant(const SearchSpace& space, int variant) {
  CoverSolution cover;
  const auto& implementations = space.implementations;
  for (int first : space.unfused) {
    // The implementations of one fusion stand together, best predicted first.
    size_t position = first;
    for (int step = 0; step < variant && position + 1 < implementations.size(); ++step)
      if (implementations[position + 1].fusion.nodes == implementations[first].fusion.nodes) ++position;
    cover.columns.push_back(static_cast<int>(position));
    cover.seconds += implementations[position].estimate.total_seconds;
  }
  return cover;
}

// Where the predictions of one structure are wrong, another must be able to win: the best cover with the best
// implementation of each structure that no cover has for that fusion.
std::vector<CoverSolution> OtherStructures(const SearchSpace& space, const std::vector<CoverSolution>& covers,
                                           const std::function<bool(const FusionImplementation&)>& allowed) {
  std::vector<CoverSolution> others;
  const CoverSolution& best = covers.front();
  for (size_t i = 0; i < best.columns.size(); ++i) {
    const FusionImplementation& chosen = space.implementations[best.columns[i]];
    std::set<Structure> present;
    for (const CoverSolution& cover : covers)
      for (int column : cover.columns)
        if (space.implementations[column].fusion.nodes == chosen.fusion.nodes)
          present.insert(StructureOf(space.implementations[column]));
    // Best predicted first.
    for (size_t position = 0; position < space.implementations.size(); ++position) {
      const FusionImplementation& other = space.implementations[position];
      if (!(other.fusion.nodes == chosen.fusion.nodes) || !allowed(other) ||
          !present.insert(StructureOf(other)).second)
        continue;
      CoverSolution cover = best;
      cover.columns[i] = static_cast<int>(position);
      cover.seconds += other.estimate.total_seconds - chosen.estimate.total_seconds;
      others.push_back(std::move(cover));
    }
  }
  return others;
}

// Where the prediction of one fusion is wrong, others must be able to win: the best covers of different
// fusions, each fusion with its best implementation.
std::vector<CoverSolution> OtherFusions(const Graph& graph, const SearchSpace& space, int count,
                                        const std::function<bool(const FusionImplementation&)>& allowed) {
  // The implementations of one fusion stand together, best predicted first.
  std::set<const FusionImplementation*> best;
  const NodeSet* last = nullptr;
  for (const FusionImplementation& implementation : space.implementations) {
    if (!allowed(implementation) || (last != nullptr && implementation.fusion.nodes == *last)) continue;
    last = &implementation.fusion.nodes;
    best.insert(&implementation);
  }
  auto covers =
      SolveCoversOf(graph, space, [&](const FusionImplementation& kernel) { return best.contains(&kernel); },
                    {.count = count, .time_limit = kOtherCoversTimeLimit});
  return covers.ok() ? std::move(covers->covers) : std::vector<CoverSolution>();
}

// Returns how each fusion of a cover is computed.
std::vector<std::pair<std::vector<int>, Structure>> StructuresOf(const SearchSpace& space,
                                                                 const CoverSolution& cover) {
  std::vector<std::pair<std::vector<int>, Structure>> structures;
  for (int column : cover.columns)
    structures.emplace_back(space.implementations[column].fusion.nodes.Members(),
                            StructureOf(space.implementations[column]));
  return structures;
}

// Takes the worst predicted covers away until `count` are left; those that have a structure of their own
// last, and the best never.
void RemoveWorst(size_t count, Plans* plans) {
  std::vector<CoverSolution>& covers = plans->covers.covers;
  std::map<std::pair<std::vector<int>, Structure>, int> present;
  for (const CoverSolution& cover : covers)
    for (const auto& structure : StructuresOf(plans->space, cover)) ++present[structure];
  for (bool any : {false, true})
    for (size_t i = covers.size(); i-- > 1 && covers.size() > count;) {
      const auto structures = StructuresOf(plans->space, covers[i]);
      if (!any && std::any_of(structures.begin(), structures.end(),
                              [&](const auto& structure) { return present[structure] == 1; }))
        continue;
      for (const auto& structure : structures) --present[structure];
      plans->unseen_seconds = std::min(plans->unseen_seconds, covers[i].seconds);
      covers.erase(covers.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

// Adds at most a quarter of `count` of each kind, in the place of the worst predicted covers when there are
// `count` already; these are then unseen.
void AddCovers(int count, const std::vector<std::vector<CoverSolution>>& kinds, Plans* plans) {
  std::vector<CoverSolution>& covers = plans->covers.covers;
  std::vector<CoverSolution> added;
  for (const std::vector<CoverSolution>& kind : kinds) {
    int of_kind = 0;
    for (const CoverSolution& cover : kind) {
      std::vector<int> members = cover.columns;
      std::sort(members.begin(), members.end());
      auto same = [&](const CoverSolution& other) {
        std::vector<int> columns = other.columns;
        std::sort(columns.begin(), columns.end());
        return columns == members;
      };
      if (of_kind == count / 4 || std::any_of(covers.begin(), covers.end(), same) ||
          std::any_of(added.begin(), added.end(), same))
        continue;
      added.push_back(cover);
      ++of_kind;
    }
  }
  RemoveWorst(count - added.size(), plans);
  covers.insert(covers.end(), added.begin(), added.end());
  std::stable_sort(covers.begin(), covers.end(),
                   [](const CoverSolution& a, const CoverSolution& b) { return a.seconds < b.seconds; });
}

// Returns the seconds that no cover is predicted to beat, whatever its sets: of the corrections of kernels
// that are known, the one that shortens most counts.
double LeastSeconds(const Submission& submission, const CostModel& model, const SearchSpace& space) {
  double correction = 1;
  for (const FusionImplementation& implementation : space.implementations)
    correction = std::min(correction, implementation.estimate.correction);
  return correction * model.LeastSeconds(static_cast<double>(submission.graph->FloorBytes(submission.sizes)));
}

// Describes all kernels that compute the node, also those that are predicted too slow to be kept.
std::vector<std::string> DescriptionsOf(const Submission& submission, const CostModel& model,
                                        SearchOptions search, int node) {
  std::vector<std::string> descriptions;
  search.implementation.wanted = [&](const FusionImplementation& kernel) {
    if (kernel.fusion.nodes.Contains(node)) descriptions.push_back(Describe(*submission.graph, kernel));
    return false;
  };
  (void)SearchFusions(*submission.graph, submission.sizes, model, search);  // for what it asks
  return descriptions;
}

}  // namespace

std::vector<CoverSolution> UnfusedCovers(const SearchSpace& space) {
  std::vector<CoverSolution> covers;
  for (int variant = 0; variant < kUnfusedVariants; ++variant)
    covers.push_back(UnfusedVariant(space, variant));
  return covers;
}

// 1,063 implementations (CG step) take 40 ms. Not by the time that it took: a job that goes on after a
// restart is to search as before.
bool IsSmall(const Plans& plans) { return plans.summary.fusion_implementations() <= 5000; }

absl::StatusOr<CoverResult> SolveCoversOf(const Graph& graph, const SearchSpace& space,
                                          const std::function<bool(const FusionImplementation&)>& allowed,
                                          const CoverOptions& options) {
  CoverProblem problem{.node_count = graph.node_count()};
  for (const Node& node : graph.nodes()) {
    problem.successors.emplace_back();
    for (NodeId successor : graph.successors(node.id)) problem.successors.back().push_back(successor.value);
  }
  std::vector<int> positions;
  for (size_t i = 0; i < space.implementations.size(); ++i) {
    const FusionImplementation& implementation = space.implementations[i];
    if (!allowed(implementation)) continue;
    positions.push_back(static_cast<int>(i));
    problem.columns.push_back({implementation.fusion.nodes, implementation.estimate.total_seconds});
  }
  auto covers = SolveCovers(problem, options);
  if (!covers.ok()) return covers;
  for (CoverSolution& cover : covers->covers)
    for (int& column : cover.columns) column = positions[column];
  return covers;
}

namespace {

// Returns the error that says which hint no kernel meets, or that no kernel meets all of them.
absl::Status CheckHints(const Submission& submission, const CostModel& model, const SearchOptions& search,
                        const Hints& hints, const SearchSpace& space) {
  const Graph& graph = *submission.graph;
  for (const NodeSet& group : hints.together) {
    const auto& all = space.implementations;
    const Hints alone{.together = {group}};
    if (std::any_of(all.begin(), all.end(), [&](const FusionImplementation& implementation) {
          return implementation.fusion.nodes.Intersects(group) && alone.Allow(implementation.fusion.nodes);
        }))
      continue;
    const std::vector<std::string> names = ResultNames(graph, group);
    return InvalidField("hints.together",
                        absl::StrCat("no kernel computes ", absl::StrJoin(names, ", "),
                                     " together; explain --why ", names[0], ",", names[1], " says why"));
  }
  for (const Hints::Implementation& wanted : hints.implementations) {
    const auto& all = space.implementations;
    const Hints alone{.implementations = {wanted}};
    if (std::any_of(all.begin(), all.end(), [&](const FusionImplementation& implementation) {
          return implementation.fusion.nodes.Contains(wanted.node) &&
                 alone.AllowMaking(graph, implementation);
        }))
      continue;
    const std::vector<std::string> descriptions = DescriptionsOf(submission, model, search, wanted.node);
    // There is one, but other hints permit none: told below.
    if (std::any_of(descriptions.begin(), descriptions.end(),
                    [&](const std::string& made) { return IsDescribedBy(made, wanted.text); }))
      continue;
    return InvalidField(
        "hints.implementations",
        absl::StrCat("no kernel that computes ", graph.value(graph.node(NodeId{wanted.node}).result).name,
                     " is described by \"", wanted.text,
                     "\"; words of those that there are: ", WordsOf(descriptions)));
  }
  if (!hints.empty())
    for (int node = 0; node < static_cast<int>(graph.nodes().size()); ++node)
      if (std::none_of(space.implementations.begin(), space.implementations.end(),
                       [&](const FusionImplementation& kernel) {
                         return kernel.fusion.nodes.Contains(node) && hints.Allow(graph, kernel);
                       }))
        return InvalidField(
            "hints", absl::StrCat("they contradict each other: no kernel that computes ",
                                  graph.value(graph.node(NodeId{node}).result).name, " meets all of them"));
  return absl::OkStatus();
}

void Summarize(const CostModel& model, Plans* plans) {
  v1::SearchSummary& summary = plans->summary;
  summary.set_fusions(plans->space.fusible_sets);
  summary.set_covers(static_cast<int64_t>(plans->covers.covers.size()));
  summary.set_proved_optimal(plans->covers.proved_optimal);
  summary.set_best_predicted_seconds(plans->covers.covers.front().seconds);
  summary.set_bound_seconds(plans->covers.bound_seconds);
  summary.set_gap(1 - summary.bound_seconds() / summary.best_predicted_seconds());
  if (plans->covers.proved_optimal) summary.set_gap(0);
  summary.set_complete(plans->space.complete);
  for (size_t size = 1; size < plans->space.fusions_by_size.size(); ++size)
    summary.add_fusions_by_size(plans->space.fusions_by_size[size]);
  plans->corrections = model.residual().Explain();
  summary.mutable_prediction()->set_jobs(model.residual().jobs());
  summary.mutable_prediction()->set_candidates(model.residual().candidates());
  summary.mutable_prediction()->set_deviation(model.residual().deviation());
  plans->learned_micros = model.residual().learned_micros();
  for (const std::string& note : plans->space.notes) summary.add_notes(note);
  for (const std::string& note : plans->covers.notes) summary.add_notes(note);
}

}  // namespace

absl::StatusOr<Plans> PlanCovers(const Submission& submission, const CostModel& model, int candidates,
                                 bool deterministic, const Hints& hints, int64_t fusions) {
  const auto start = std::chrono::steady_clock::now();
  const Graph& graph = *submission.graph;
  SearchOptions search;
  search.implementation.deterministic = deterministic;
  search.together = hints.together;
  if (graph.node_count() <= kFewNodes) {
    search.max_fusion_nodes = kFewNodes;
    search.max_fusions = kFusionsOfFewNodes;
  }
  if (fusions > 0) search.max_fusions = fusions;
  if (!hints.implementations.empty())
    search.implementation.wanted = [&](const FusionImplementation& kernel) {
      return hints.AllowMaking(graph, kernel);
    };
  FUSION_ASSIGN_OR_RETURN(auto space, SearchFusions(graph, submission.sizes, model, search));
  Plans plans{.space = std::move(space)};
  plans.summary.set_fusion_implementations(static_cast<int64_t>(plans.space.implementations.size()));

  FUSION_RETURN_IF_ERROR(CheckHints(submission, model, search, hints, plans.space));
  auto covers = SolveCoversOf(
      graph, plans.space, [&](const FusionImplementation& kernel) { return hints.Allow(graph, kernel); },
      {.count = candidates, .time_limit = kCoverTimeLimit, .lp_text = &plans.lp_text});
  if (!covers.ok() && !hints.empty())
    return InvalidField("hints",
                        absl::StrCat("no choice of kernels meets them: ", covers.status().message()));
  if (!covers.ok()) return covers.status();
  plans.covers = *std::move(covers);
  const double listed_gap = 1 - plans.covers.bound_seconds / plans.covers.covers.front().seconds;
  const bool listed_proved = plans.covers.proved_optimal;
  if (!plans.space.complete) {
    // Nothing is known of sets that were not looked at, but that each input is read and each output written.
    plans.covers.proved_optimal = plans.covers.exhausted = false;
    plans.covers.bound_seconds =
        std::min(plans.covers.bound_seconds, LeastSeconds(submission, model, plans.space));
  }

  plans.unseen_seconds = !plans.covers.proved_optimal ? plans.covers.bound_seconds
                         : plans.covers.exhausted     ? std::numeric_limits<double>::infinity()
                                                      : plans.covers.covers.back().seconds;
  std::vector<std::vector<CoverSolution>> others = {
      OtherStructures(plans.space, plans.covers.covers,
                      [&](const FusionImplementation& kernel) { return hints.AllowMaking(graph, kernel); })};
  if (candidates >= 4 && IsSmall(plans))
    others.push_back(
        OtherFusions(graph, plans.space, candidates / 4 + 1,
                     [&](const FusionImplementation& kernel) { return hints.Allow(graph, kernel); }));
  // Where every prediction of a fusion is wrong, not fusing must be able to win.
  if (hints.together.empty() && hints.implementations.empty()) others.push_back(UnfusedCovers(plans.space));
  AddCovers(candidates, others, &plans);

  const double start_seconds = model.StartSeconds();
  for (CoverSolution& cover : plans.covers.covers) cover.seconds += start_seconds;
  plans.covers.bound_seconds += start_seconds;
  plans.unseen_seconds += start_seconds;

  plans.summary.set_listed_gap(listed_proved ? 0 : listed_gap);
  Summarize(model, &plans);
  plans.summary.set_seconds(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return plans;
}

v1::Candidate DescribeCover(const Graph& graph, const SearchSpace& space, const CoverSolution& cover,
                            int predicted_rank) {
  v1::Candidate candidate;
  candidate.set_predicted_rank(predicted_rank);
  candidate.set_predicted_seconds(cover.seconds);
  std::vector<std::string> descriptions;
  for (int member : cover.columns) {
    const FusionImplementation& implementation = space.implementations[member];
    v1::FusionSummary* fusion = candidate.add_fusions();
    for (NodeId node : implementation.order) fusion->add_results(graph.value(graph.node(node).result).name);
    descriptions.push_back(Describe(graph, implementation));
  }
  candidate.set_description(absl::StrJoin(descriptions, "; "));
  return candidate;
}

Plans WithoutUnused(Plans plans) {
  std::vector<FusionImplementation>& all = plans.space.implementations;
  std::map<int, int> kept;  // positions before and after
  for (const CoverSolution& cover : plans.covers.covers)
    for (int column : cover.columns) kept[column] = 0;
  for (const CoverSolution& cover : UnfusedCovers(plans.space))
    for (int column : cover.columns) kept[column] = 0;
  int count = 0;
  for (auto& [before, after] : kept) {
    after = count++;
    if (after != before) all[after] = std::move(all[before]);
  }
  all.resize(count);
  all.shrink_to_fit();
  for (CoverSolution& cover : plans.covers.covers)
    for (int& column : cover.columns) column = kept.at(column);
  for (int& position : plans.space.unfused) position = kept.at(position);
  return plans;
}

std::vector<WaitingCandidate> AllCandidates(const Plans& plans) {
  std::vector<WaitingCandidate> all;
  std::map<std::vector<std::pair<std::vector<int>, Structure>>, int> groups;
  for (const CoverSolution& cover : plans.covers.covers) {
    auto structures = StructuresOf(plans.space, cover);
    std::sort(structures.begin(), structures.end());
    const int group =
        groups.try_emplace(std::move(structures), static_cast<int>(groups.size())).first->second;
    all.push_back({.position = static_cast<int>(all.size()), .seconds = cover.seconds, .group = group});
  }
  return all;
}

std::vector<const FusionImplementation*> ImplementationsOf(const Plans& plans, int position) {
  std::vector<const FusionImplementation*> implementations;
  for (int member : plans.covers.covers[position].columns)
    implementations.push_back(&plans.space.implementations[member]);
  return implementations;
}

}  // namespace fusion
