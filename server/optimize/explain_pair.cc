#include "server/optimize/explain_pair.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/graph/reachability.h"
#include "server/optimize/hints.h"
#include "server/search/implementation_choice.h"
#include "server/skeletons/skeletons.h"

namespace fusion {
namespace {

constexpr std::chrono::seconds kTimeLimit(5);

std::string Microseconds(double seconds) { return absl::StrFormat("%.4g us", seconds * 1e6); }

class PairExplainer {
 public:
  PairExplainer(const Submission& submission, const CostModel& model, const Plans& plans, const Hints& hints,
                NodeId first, NodeId second)
      : submission_(submission),
        graph_(*submission.graph),
        model_(model),
        plans_(plans),
        hints_(hints),
        first_(first.value),
        second_(second.value) {}

  absl::StatusOr<v1::PairExplanation> Explain() {
    v1::PairExplanation answer;
    const CoverSolution& best = plans_.covers.covers.front();
    answer.set_best_seconds(best.seconds);
    for (int column : best.columns) {
      const FusionImplementation& implementation = plans_.space.implementations[column];
      if (!Both(implementation)) continue;
      answer.set_together(true);
      answer.set_together_seconds(best.seconds);
      answer.set_fusion(Describe(graph_, implementation));
      answer.set_text(
          absl::StrCat("one kernel of the best predicted cover computes both: ", answer.fusion()));
      return answer;
    }
    const auto& implementations = plans_.space.implementations;
    if (std::none_of(implementations.begin(), implementations.end(),
                     [&](const auto& i) { return Both(i); })) {
      answer.set_text(WhyNoKernel());
      return answer;
    }
    if (std::none_of(implementations.begin(), implementations.end(),
                     [&](const auto& i) { return Both(i) && hints_.Allow(graph_, i); })) {
      answer.set_text("kernels compute both, but the hints permit none of them");
      return answer;
    }
    return CompareTimes(std::move(answer));
  }

 private:
  bool Both(const FusionImplementation& implementation) const {
    return implementation.fusion.nodes.Contains(first_) && implementation.fusion.nodes.Contains(second_);
  }

  // The search knows no kernel that computes both.
  std::string WhyNoKernel() const {
    std::vector<std::vector<int>> successors(graph_.node_count());
    for (const Node& node : graph_.nodes())
      for (NodeId next : graph_.successors(node.id)) successors[node.id.value].push_back(next.value);
    const Reachability reachability(successors);
    // A kernel that computes both computes all that lies between.
    NodeSet least;
    for (int node = graph_.node_count() - 1; node >= 0; --node) {
      const bool between =
          (reachability.descendants(first_).Contains(node) &&
           reachability.ancestors(second_).Contains(node)) ||
          (reachability.descendants(second_).Contains(node) && reachability.ancestors(first_).Contains(node));
      if (between || node == first_ || node == second_) least.Add(node);
    }
    const bool apart = least.Size() == 2 && !reachability.descendants(first_).Contains(second_) &&
                       !reachability.descendants(second_).Contains(first_);
    if (apart && !ReadTheSame())
      return "nothing joins them: neither is computed from the other, and they read no common vector or "
             "matrix, so that one kernel "
             "for both would save no traffic";
    std::string what = least.Size() > 2 ? absl::StrCat("a kernel for both computes what lies between too, {",
                                                       absl::StrJoin(ResultNames(graph_, least), " "), "}; ")
                                        : "";
    std::string reason;
    const auto found = ImplementFusion(graph_, least, submission_.sizes, model_, {}, &reason);
    if (!found.empty())
      return absl::StrCat(what, "there is such a kernel, ", Describe(graph_, found.front()),
                          ", but the search's limits left it out", plans_.space.notes.empty() ? "" : ": ",
                          absl::StrJoin(plans_.space.notes, "; "));
    if (reason.empty()) reason = ChooseSkeleton(graph_, least).reason;
    return absl::StrCat(what, reason.empty() ? "no kind of kernel computes them" : reason);
  }

  bool ReadTheSame() const {
    const Node &a = graph_.nodes()[first_], &b = graph_.nodes()[second_];
    return std::any_of(a.operands.begin(), a.operands.end(), [&](ValueId value) {
      const Value& read = graph_.value(value);
      return !read.literal && !read.type.is_scalar() &&
             std::find(b.operands.begin(), b.operands.end(), value) != b.operands.end();
    });
  }

  // The best cover with both in one kernel, against the best.
  absl::StatusOr<v1::PairExplanation> CompareTimes(v1::PairExplanation answer) const {
    auto covers = SolveCoversOf(graph_, plans_.space,
                                [&](const FusionImplementation& kernel) {
                                  const NodeSet& nodes = kernel.fusion.nodes;
                                  return hints_.Allow(graph_, kernel) &&
                                         nodes.Contains(first_) == nodes.Contains(second_);
                                },
                                {.count = 1, .time_limit = kTimeLimit});
    if (!covers.ok()) {
      answer.set_text(absl::StrCat("kernels compute both, but none leaves a rest that can be scheduled: ",
                                   covers.status().message()));
      return answer;
    }
    const CoverSolution& best = covers->covers.front();
    for (int column : best.columns) {
      const FusionImplementation& implementation = plans_.space.implementations[column];
      if (Both(implementation)) answer.set_fusion(Describe(graph_, implementation));
    }
    answer.set_together_seconds(best.seconds + model_.StartSeconds());
    answer.set_text(absl::StrCat("predicted slower: with ", answer.fusion(), " the best cover takes ",
                                 Microseconds(answer.together_seconds()), ", ",
                                 Microseconds(answer.together_seconds() - answer.best_seconds()),
                                 " more than with the two in different kernels",
                                 covers->proved_optimal ? "" : " (not proved: the time limit was reached)"));
    return answer;
  }

  const Submission& submission_;
  const Graph& graph_;
  const CostModel& model_;
  const Plans& plans_;
  const Hints& hints_;
  const int first_, second_;
};

}  // namespace

absl::StatusOr<v1::PairExplanation> ExplainPair(const Submission& submission, const CostModel& model,
                                                const Plans& plans, const Hints& hints,
                                                const std::string& first, const std::string& second) {
  auto a = NodeNamed(*submission.graph, first), b = NodeNamed(*submission.graph, second);
  if (!a.ok()) return a.status();
  if (!b.ok()) return b.status();
  if (*a == *b)
    return absl::InvalidArgumentError(absl::StrCat(first, " and ", second, " are the same value"));
  auto answer = PairExplainer(submission, model, plans, hints, *a, *b).Explain();
  if (!answer.ok()) return answer;
  answer->add_values(first);
  answer->add_values(second);
  return answer;
}

}  // namespace fusion
