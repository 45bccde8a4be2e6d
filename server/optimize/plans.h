// Plans are what a search of a graph found: the covers that are predicted to be fastest, and what is said of
// all others.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/optimizer.pb.h"
#include "server/cover/cover_solver.h"
#include "server/graph/graph.h"
#include "server/model/cost_model.h"
#include "server/optimize/hints.h"
#include "server/optimize/submission.h"
#include "server/search/search.h"

namespace fusion {

// Returns covers by implementations that are allowed; their columns are positions in the space.
absl::StatusOr<CoverResult> SolveCoversOf(const Graph& graph, const SearchSpace& space,
                                          const std::function<bool(const FusionImplementation&)>& allowed,
                                          const CoverOptions& options);

// The result of a search and its covers.
struct Plans {
  // WithoutUnused leaves the implementations that covers use here, and the best ones of single nodes.
  SearchSpace space;
  CoverResult covers;
  v1::SearchSummary summary;  // of the whole space
  std::string lp_text;
  // Predicted time of the best cover by the listed implementations that is not among `covers`, or less;
  // infinite: there is none.
  double unseen_seconds = 0;
  std::string corrections;     // what was learned of predictions, for people
  int64_t learned_micros = 0;  // when that was last, since 1970; 0: not known
};
// Returns InvalidArgument also when the hints leave no cover. `fusions` is the number of fusible sets that
// are looked at; 0: as many as suits the size of the graph.
absl::StatusOr<Plans> PlanCovers(const Submission& submission, const CostModel& model, int candidates,
                                 bool deterministic, const Hints& hints = {}, int64_t fusions = 0);

// Removes what neither the covers nor UnfusedCovers use: nearly all of a large space. Columns become
// positions in what is left, which keeps its order.
Plans WithoutUnused(Plans plans);

// Returns ways to compute the graph node by node: each node with its best predicted implementation, each with
// its second best, and so on.
std::vector<CoverSolution> UnfusedCovers(const SearchSpace& space);

// Returns whether covers are found so fast that a job can afford several searches.
bool IsSmall(const Plans& plans);

// Returns the kernels of the cover at this position, in schedule order.
std::vector<const FusionImplementation*> ImplementationsOf(const Plans& plans, int position);

// A candidate that waits to be timed, and what it is predicted to take.
struct WaitingCandidate {
  int position = 0;
  double seconds = 0;
  // Standard deviation of log(measured / predicted), where it is known; 0: that of the model.
  double deviation = 0;
  // RaceCandidate explains it; AllCandidates gives the same group to covers of the same fusions whose kernels
  // have the same structures.
  int group = -1;
};
// Returns all covers of the plans.
std::vector<WaitingCandidate> AllCandidates(const Plans& plans);

// Returns the description of a candidate without its code, for explain.
v1::Candidate DescribeCover(const Graph& graph, const SearchSpace& space, const CoverSolution& cover,
                            int predicted_rank);

}  // namespace fusion
