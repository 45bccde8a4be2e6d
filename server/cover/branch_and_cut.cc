#include "server/cover/branch_and_cut.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/cover/conflict_cuts.h"
#include "server/cover/core.h"
#include "server/cover/neighbourhood_search.h"
#include "server/cover/pair_branching.h"
#include "server/cover/set_problem.h"
#include "server/cover/subset_row_cuts.h"
#include "server/cover/window.h"
#include "server/cover/zero_half_cuts.h"

namespace fusion {
namespace {

// Rounds of cuts of three nodes, at the root and elsewhere.
constexpr int kFirstCutRounds = 3;  // before there is any partition
constexpr int kRootCutRounds = 30;
constexpr int kCutRounds = 2;
// Halves of sums are looked for where there are fewer other cuts: they make programs longer for what they
// gain.
constexpr size_t kFewCuts = 10;
constexpr int kHalvingAttempts = 2;
// Sets for each node that the relaxed program keeps after the root, of large problems.
constexpr size_t kSetsInTree = 2;
// Sets may join cuts of others up to this reduced cost, as a multiple of what a node costs on average.
constexpr double kNear = 2;
// Problems of fewer sets are not made smaller.
constexpr size_t kWorthwhile = 200;
// The first cutoff, of the way from the bound to the best; where times have a unit, one unit if that is more.
constexpr double kFirstCutoff = 0.25, kFirstCutoffOfUnits = 1.0 / 16;
constexpr double kOfUnit = 0.99;
constexpr double kNextUnits = 1.5;  // what is less than this away is one unit away at most

bool IsWhole(const std::vector<std::pair<int, double>>& shares) {
  return std::all_of(shares.begin(), shares.end(), [](const auto& share) { return share.second > kWhole; });
}

// Returns the seconds of which all times are multiples; 0 when there are none to speak of. Times of kernels
// that differ in whole vectors are such multiples.
double Unit(const SetProblem& problem) {
  double unit = 0, smallest = INFINITY;
  for (const SetProblem::Set& set : problem.sets) smallest = std::min(smallest, set.seconds);
  const double least = smallest * 1e-3, same = smallest * 1e-9;
  for (const SetProblem::Set& set : problem.sets) {
    if (unit == 0) unit = set.seconds;
    // Euclid's algorithm.
    for (double longer = set.seconds, rest; (rest = std::abs(std::remainder(longer, unit))) > same;) {
      longer = unit;
      unit = rest;
      if (unit < least) return 0;
    }
  }
  return unit;
}

}  // namespace

BranchAndCut::BranchAndCut(const SetProblem& problem, Relaxation& relaxation, std::set<Cut>& cuts,
                           Deadline deadline, std::function<void(Partition)> meet)
    : problem_(problem),
      relaxation_(relaxation),
      cuts_(cuts),
      deadline_(deadline),
      meet_(std::move(meet)),
      unit_(Unit(problem)) {}

bool BranchAndCut::Hopeless(double bound) const {
  constexpr double kRounding = 1e-9;
  bound = std::max(bound, floor_);
  if (bound >= cutoff_) return true;
  if (best_.seconds == INFINITY) return bound == INFINITY;
  if (unit_ == 0) return bound >= best_.seconds * (1 - kRounding);
  // A better partition is better by a whole unit.
  return bound >= best_.seconds - unit_ + std::max(1e-6 * unit_, kRounding * best_.seconds);
}

double BranchAndCut::NextUnit(double bound) const {
  constexpr double kRounding = 1e-6;  // of a unit
  if (unit_ == 0 || !std::isfinite(bound)) return bound;
  return std::max(bound, std::ceil(bound / unit_ - kRounding) * unit_ * (1 - 1e-9));
}

BranchAndCut::Answer BranchAndCut::Solve(const std::vector<char>& out, const Partition* start,
                                         bool search_near, SearchLimits limits) {
  best_ = {.seconds = INFINITY};
  if (start) best_ = *start;
  floor_ = limits.floor;
  cutoff_ = limits.cutoff;
  out_ = &out;
  all_sets_ = std::count(out.begin(), out.end(), 0);
  failure_.clear();
  Open root{.out = out};
  double unsolved = INFINITY;  // least bound of what had no answer
  const Step step = InTime() ? SolveRoot(&root.out, search_near) : Step::kFailed;
  if (step == Step::kFailed) unsolved = 0;
  if (step == Step::kBranch) {
    root.bound = root_.seconds;
    unsolved = std::max(root_.seconds, SolveByCutoffs(std::move(root)));
  }
  const double bound = std::min({NextUnit(unsolved), best_.seconds, limits.cutoff});
  Answer answer{.bound = bound, .root_prices = root_prices_, .failure = failure_};
  const bool found = best_.seconds < INFINITY, all = Hopeless(bound);
  answer.result.outcome = found ? (all ? PartitionOutcome::kOptimal : PartitionOutcome::kFeasible)
                                : (all ? PartitionOutcome::kNone : PartitionOutcome::kUnknown);
  if (found) answer.result.partition = best_;
  return answer;
}

double BranchAndCut::SolveByCutoffs(Open root) {
  const double last = cutoff_;
  double bound = NextUnit(std::max(root.bound, floor_));
  const double gap = best_.seconds - bound;
  double step = unit_ > 0 ? std::max(unit_, gap * kFirstCutoffOfUnits) : gap * kFirstCutoff;
  const bool by_steps = all_sets_ > kWorthwhile && best_.seconds < INFINITY;
  for (;;) {
    floor_ = std::max(floor_, bound);  // the first one found that is no slower ends the search
    // Times that are multiples of the unit are faster by nearly a whole one, or not at all.
    const double cutoff = bound + step - kOfUnit * unit_;
    cutoff_ = by_steps && cutoff < std::min(best_.seconds - unit_, last - unit_ / 2) ? cutoff : last;
    std::vector<char> out = root.out;
    LeaveOut(root_.seconds, root_.reduced_costs, &out);
    const bool small = IsSmall(out);
    if (!small) cutoff_ = last;
    const double unsolved = small ? SolveCore(std::move(out), bound) : SolveTree({root.bound, root.out, {}});
    const double reached = cutoff_;
    cutoff_ = last;
    if (unsolved < INFINITY) return std::max(unsolved, bound);
    if (Hopeless(reached)) return INFINITY;
    bound = NextUnit(reached);
    if (unit_ == 0) step *= 2;
  }
}

BranchAndCut::Step BranchAndCut::SolveRoot(std::vector<char>* out, bool search_near) {
  const bool look_first = search_near && best_.seconds == INFINITY;
  Step step = SolveRelaxed(out, look_first ? kFirstCutRounds : kRootCutRounds, true);
  if (step == Step::kFailed) return step;
  root_prices_ = relaxation_.prices().nodes;
  if (step == Step::kDone) return step;
  KeepRoot();
  const bool rounded = search_near && Round(*out_);
  if (problem_.node_count > kLargeNodes && best_.seconds == INFINITY && !rounded) Dive(*out);
  LeaveOut(root_.seconds, root_.reduced_costs, out);
  if (look_first && !IsSmall(*out)) {
    step = SolveRelaxed(out, kRootCutRounds, true);
    if (step == Step::kFailed) return Step::kBranch;  // there still is the first program
    if (step == Step::kBranch) KeepRoot();
  }
  if (search_near && step == Step::kBranch && !IsSmall(*out)) relaxation_.Shrink(kSetsInTree);
  return step;
}

void BranchAndCut::KeepRoot() {
  root_ = {relaxation_.seconds(), relaxation_.reduced_costs(), {}};
  for (const auto& [cut, price] : relaxation_.prices().cuts)
    if (price < 0) root_.cuts.push_back(*cut);
}

bool BranchAndCut::IsSmall(const std::vector<char>& out) const {
  constexpr double kMuchSmaller = 0.6;
  if (best_.seconds == INFINITY || all_sets_ <= kWorthwhile) return false;
  auto left = std::count(out.begin(), out.end(), 0);
  for (int set : best_.sets) left += out[set];
  return static_cast<double>(left) < kMuchSmaller * static_cast<double>(all_sets_);
}

double BranchAndCut::SolveCore(std::vector<char> out, double floor) {
  for (int set : best_.sets) out[set] = 0;
  const std::vector<int> undecided = UndecidedPositions(problem_, best_, &out);
  if (undecided.empty()) return INFINITY;
  const Partition around = best_;
  const Window core(problem_, around, undecided, out);
  std::vector<double> costs;
  for (size_t set = 0; set < core.problem().sets.size(); ++set)
    costs.push_back(root_.reduced_costs[core.SetOf(static_cast<int>(set))]);
  Relaxation relaxation(core.problem(),
                        static_cast<double>(core.inside().sets.size()) / core.inside().seconds, costs);
  std::set<Cut> cuts;
  for (const Cut& cut : root_.cuts)
    if (std::optional<Cut> inside = core.Inside(cut)) cuts.insert(*std::move(inside));
  const Answer answer = BranchAndCut(core.problem(), relaxation, cuts, deadline_,
                                     [&](const Partition& better) { Found(core.Replaced(better.sets)); })
                            .Solve(std::vector<char>(core.problem().sets.size(), 0), &core.inside(), false,
                                   {floor - core.outside_seconds(), cutoff_ - core.outside_seconds()});
  if (!answer.failure.empty()) failure_ = answer.failure;
  const PartitionOutcome outcome = answer.result.outcome;
  if (outcome == PartitionOutcome::kOptimal || outcome == PartitionOutcome::kNone) return INFINITY;
  return answer.bound + core.outside_seconds();
}

double BranchAndCut::SolveTree(Open first) {
  double unsolved = INFINITY, best = best_.seconds;
  std::vector<Open> open = Halves(first);  // the last one is next; else the one of least bound
  if (open.empty()) return first.bound;
  bool plunging = true;
  // All that is below the cutoff must be looked at, or the first one found will do: then the last one is
  // always next, for its program differs least from the one before.
  const bool in_depth = cutoff_ < best_.seconds || best_.seconds - floor_ < kNextUnits * unit_;
  while (!open.empty()) {
    if (!plunging && !in_depth)
      std::iter_swap(std::min_element(open.begin(), open.end(),
                                      [](const Open& a, const Open& b) { return a.bound < b.bound; }),
                     open.end() - 1);
    Open at = std::move(open.back());
    open.pop_back();
    plunging = false;
    if (Hopeless(at.bound)) continue;
    if (best_.seconds < best) LeaveOut(root_.seconds, root_.reduced_costs, &at.out);
    relaxation_.GoOnFrom(at.basis);
    const Step step = InTime() ? SolveRelaxed(&at.out, kCutRounds) : Step::kFailed;
    if (step == Step::kFailed) unsolved = std::min(unsolved, at.bound);
    if (step != Step::kBranch) continue;
    at.bound = std::max(at.bound, relaxation_.seconds());
    std::vector<Open> halves = Halves(at);
    if (halves.empty()) unsolved = std::min(unsolved, at.bound);
    for (Open& half : halves) {
      open.push_back(std::move(half));
      plunging = true;
    }
  }
  return unsolved;
}

std::vector<BranchAndCut::Open> BranchAndCut::Halves(const Open& at) const {
  const NodePair pair = LeastDecidedPair(problem_, relaxation_.shares());
  if (pair.a == pair.b) return {};
  std::vector<Open> halves(2, {at.bound, at.out, relaxation_.LastBasis()});
  for (bool together : {false, true}) Decide(problem_, pair, together, &halves[together].out);
  return halves;
}

BranchAndCut::Step BranchAndCut::SolveRelaxed(std::vector<char>* out, int cut_rounds, bool until_small) {
  for (bool solved = false;; solved = true) {
    if (!relaxation_.Solve(cuts_, *out, deadline_)) {
      if (InTime()) failure_ = "lp_solve failed";
      return solved ? Step::kBranch : Step::kFailed;  // without the last cuts
    }
    if (!relaxation_.feasible() || Hopeless(relaxation_.seconds())) return Step::kDone;
    if (IsWhole(relaxation_.shares())) {
      std::vector<int> chosen;
      for (const auto& [set, share] : relaxation_.shares()) chosen.push_back(set);
      if (!problem_.IsExactCover(chosen)) {
        failure_ = "lp_solve's solution is not an exact cover";
        return Step::kFailed;
      }
      if (auto order = ScheduleOrder(problem_, chosen)) {
        Found({std::move(*order), problem_.Seconds(chosen)});
        return Step::kDone;
      }
      if (auto split = SplitCycles(problem_, chosen); split && Allowed(split->sets)) Found(*std::move(split));
      size_t added = 0;
      for (Cut& cut : CycleCuts(problem_, chosen)) added += cuts_.insert(std::move(cut)).second;
      if (problem_.node_count > kLargeNodes)  // there may be very many cycles
        for (Cut& cut : CliqueCuts(problem_, relaxation_.shares(), NearSets(*out), deadline_))
          added += cuts_.insert(std::move(cut)).second;
      if (added == 0) {
        failure_ = "lp_solve's solution breaks a cut";
        return Step::kFailed;
      }
      continue;
    }
    LeaveOut(relaxation_.seconds(), relaxation_.reduced_costs(), out);
    if (until_small && IsSmall(*out)) return Step::kBranch;
    if (cut_rounds-- <= 0 || !Separate(*out)) return Step::kBranch;
  }
}

bool BranchAndCut::Separate(const std::vector<char>& out) {
  size_t added = 0;
  for (auto separate : {WaitingPairCuts, SubsetRowCuts})
    for (Cut& cut : separate(problem_, relaxation_.shares())) added += cuts_.insert(std::move(cut)).second;
  for (Cut& cut : CliqueCuts(problem_, relaxation_.shares(), NearSets(out), deadline_))
    added += cuts_.insert(std::move(cut)).second;
  if (added < kFewCuts)
    for (Cut& cut : ZeroHalfCuts(problem_, relaxation_.cuts(), relaxation_.cuts_of(), relaxation_.shares(),
                                 kHalvingAttempts))
      added += cuts_.insert(std::move(cut)).second;
  return added > 0;
}

std::vector<int> BranchAndCut::NearSets(const std::vector<char>& out) const {
  const std::vector<double>& costs = relaxation_.reduced_costs();
  const double gap =
      std::min(best_.seconds - relaxation_.seconds(), kNear * relaxation_.seconds() / problem_.node_count);
  std::vector<int> near;
  for (size_t set = 0; set < costs.size(); ++set)
    if (!out[set] && costs[set] < gap) near.push_back(static_cast<int>(set));
  std::stable_sort(near.begin(), near.end(), [&](int a, int b) { return costs[a] < costs[b]; });
  return near;
}

void BranchAndCut::LeaveOut(double seconds, const std::vector<double>& reduced_costs,
                            std::vector<char>* out) const {
  if (std::min(best_.seconds, cutoff_) == INFINITY) return;
  for (size_t set = 0; set < reduced_costs.size(); ++set)
    if (!(*out)[set] && Hopeless(seconds + reduced_costs[set])) (*out)[set] = 1;
}

bool BranchAndCut::Allowed(const std::vector<int>& sets) const {
  return std::none_of(sets.begin(), sets.end(), [&](int set) { return (*out_)[set]; });
}

void BranchAndCut::Found(Partition partition) {
  if (partition.seconds >= best_.seconds) return;
  meet_(partition);
  best_ = std::move(partition);
}

}  // namespace fusion
