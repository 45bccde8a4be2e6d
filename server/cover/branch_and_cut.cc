#include "server/cover/branch_and_cut.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/cover/conflict_cuts.h"
#include "server/cover/core.h"
#include "server/cover/neighbourhood_search.h"
#include "server/cover/pair_branching.h"
#include "server/cover/window.h"

namespace fusion {
namespace {

constexpr double kWhole = 1 - 1e-6;  // as much of a set is all of it
// Rounds of cuts of three nodes, at the root and elsewhere.
constexpr int kFirstCutRounds = 3;  // before there is any partition
constexpr int kRootCutRounds = 30;
constexpr int kCutRounds = 2;
// Dives take sets that are nearly taken, some at once.
constexpr double kNearlyTaken = 0.7;
constexpr size_t kTakenAtOnce = 8;
constexpr int kDives = 40;
// Sets for each node that the relaxed program keeps after the root, of large problems.
constexpr size_t kSetsInTree = 2;
// Sets may join cuts of others up to this reduced cost, as a multiple of what a node costs on average.
constexpr double kNear = 2;
// Pairs of nodes of which both branches are looked at before one is chosen.
constexpr size_t kPairsTried = 8;

bool IsWhole(const std::vector<std::pair<int, double>>& shares) {
  return std::all_of(shares.begin(), shares.end(), [](const auto& share) { return share.second > kWhole; });
}

// Of which all times are multiples, seconds; 0 when there is none to speak of. As times of kernels that
// differ in whole vectors are.
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
  if (best_.seconds == INFINITY) return bound == INFINITY;
  if (unit_ == 0) return bound >= best_.seconds * (1 - kRounding);
  // What is better is better by a whole unit.
  return bound >= best_.seconds - unit_ + std::max(1e-6 * unit_, kRounding * best_.seconds);
}

double BranchAndCut::NextUnit(double bound) const {
  constexpr double kRounding = 1e-6;  // of a unit
  if (unit_ == 0 || !std::isfinite(bound)) return bound;
  return std::max(bound, std::ceil(bound / unit_ - kRounding) * unit_ * (1 - 1e-9));
}

BranchAndCut::Answer BranchAndCut::Solve(const std::vector<char>& out, const Partition* start,
                                         bool search_near) {
  best_ = {.seconds = INFINITY};
  if (start) best_ = *start;
  out_ = &out;
  all_sets_ = std::count(out.begin(), out.end(), 0);
  failure_.clear();
  Open root{.out = out};
  double unsolved = INFINITY;  // least bound of what had no answer
  const Step step = InTime() ? SolveRoot(&root.out, search_near) : Step::kFailed;
  if (step == Step::kFailed) unsolved = 0;
  if (step == Step::kBranch) {
    root.bound = relaxation_.seconds();
    unsolved = best_.seconds < INFINITY && IsSmall(root.out) ? std::max(root.bound, SolveCore(root.out)) : SolveTree(std::move(root));
  }
  unsolved = NextUnit(unsolved);
  Answer answer{.bound = std::min(unsolved, best_.seconds), .root_prices = root_prices_, .failure = failure_};
  const bool found = best_.seconds < INFINITY, all = unsolved == INFINITY || (found && Hopeless(unsolved));
  answer.result.outcome = found ? (all ? PartitionOutcome::kOptimal : PartitionOutcome::kFeasible)
                                : (all ? PartitionOutcome::kNone : PartitionOutcome::kUnknown);
  if (found) answer.result.partition = best_;
  return answer;
}

BranchAndCut::Step BranchAndCut::SolveRoot(std::vector<char>* out, bool search_near) {
  const bool look_first = search_near && best_.seconds == INFINITY;
  Step step = SolveRelaxed(out, look_first ? kFirstCutRounds : kRootCutRounds, true);
  if (step == Step::kFailed) return step;
  root_prices_ = relaxation_.prices().nodes;
  if (step == Step::kDone) return step;
  const bool rounded = search_near && Round(*out_);
  if (problem_.node_count > kLargeNodes && best_.seconds == INFINITY && !rounded) Dive(*out);
  LeaveOut(relaxation_.seconds(), relaxation_.reduced_costs(), out);
  if (look_first && !IsSmall(*out)) step = SolveRelaxed(out, kRootCutRounds, true);
  if (search_near && step == Step::kBranch && !IsSmall(*out)) relaxation_.Shrink(kSetsInTree);
  return step;
}

bool BranchAndCut::IsSmall(const std::vector<char>& out) const {
  constexpr size_t kWorthwhile = 200;
  constexpr double kMuchSmaller = 0.6;
  return all_sets_ > kWorthwhile &&
         static_cast<double>(std::count(out.begin(), out.end(), 0)) < kMuchSmaller * static_cast<double>(all_sets_);
}

double BranchAndCut::SolveCore(std::vector<char> out) {
  for (int set : best_.sets) out[set] = 0;
  const std::vector<int> undecided = UndecidedPositions(problem_, best_, &out);
  if (undecided.empty()) return INFINITY;
  const Partition around = best_;
  const Window core(problem_, around, undecided, out);
  Relaxation relaxation(core.problem(), static_cast<double>(core.inside().sets.size()) / core.inside().seconds);
  std::set<Cut> cuts;
  for (const auto& [cut, price] : relaxation_.prices().cuts)
    if (price < 0)
      if (std::optional<Cut> inside = core.Inside(*cut)) cuts.insert(*std::move(inside));
  const Answer answer = BranchAndCut(core.problem(), relaxation, cuts, deadline_, [&](const Partition& better) {
                          Found(core.Replaced(better.sets));
                        }).Solve(std::vector<char>(core.problem().sets.size(), 0), &core.inside());
  failure_ = answer.failure;
  if (answer.result.outcome == PartitionOutcome::kOptimal) return INFINITY;
  return answer.bound + core.outside_seconds();
}

double BranchAndCut::SolveTree(Open root) {
  const double root_seconds = relaxation_.seconds();
  const std::vector<double> root_costs = relaxation_.reduced_costs();
  double unsolved = INFINITY, best = best_.seconds;
  std::vector<Open> open = Halves(root);  // the last one is next; else the one of least bound
  bool plunging = !open.empty();
  while (!open.empty()) {
    if (!plunging)
      std::iter_swap(std::min_element(open.begin(), open.end(),
                                      [](const Open& a, const Open& b) { return a.bound < b.bound; }),
                     open.end() - 1);
    Open at = std::move(open.back());
    open.pop_back();
    plunging = false;
    if (Hopeless(at.bound)) continue;
    if (best_.seconds < best) LeaveOut(root_seconds, root_costs, &at.out);
    relaxation_.GoOnFrom(at.basis);
    const Step step = InTime() ? SolveRelaxed(&at.out, kCutRounds) : Step::kFailed;
    if (step == Step::kFailed) unsolved = std::min(unsolved, at.bound);
    if (step != Step::kBranch) continue;
    at.bound = std::max(at.bound, relaxation_.seconds());
    for (Open& half : Halves(at)) {
      open.push_back(std::move(half));
      plunging = true;
    }
  }
  return unsolved;
}

std::vector<BranchAndCut::Open> BranchAndCut::Halves(const Open& at) {
  std::vector<NodePair> pairs = UndecidedPairs(problem_, relaxation_.shares());
  const LinearProgram::Basis basis = relaxation_.LastBasis();
  const double seconds = relaxation_.seconds();
  auto half = [&](NodePair pair, bool together) {
    Open half{at.bound, at.out, basis};
    Decide(problem_, pair, together, &half.out);
    return half;
  };
  pairs.resize(std::min(pairs.size(), kPairsTried));
  if (pairs.size() == 1) return {half(pairs[0], false), half(pairs[0], true)};
  std::vector<Open> best;
  double most = -1;
  for (const NodePair& pair : pairs) {
    std::vector<Open> halves;
    double gained = 1;
    for (bool together : {false, true}) {
      Open child = half(pair, together);
      relaxation_.GoOnFrom(basis);
      if (relaxation_.Solve(cuts_, child.out, deadline_)) {
        child.bound = relaxation_.feasible() ? std::max(at.bound, relaxation_.seconds()) : INFINITY;
        if (Hopeless(child.bound)) child.bound = INFINITY;
        LeaveOut(relaxation_.seconds(), relaxation_.reduced_costs(), &child.out);
      }
      constexpr double kLeast = 1e-3, kMost = 4;  // of a unit or of what a node costs
      const double measure = unit_ > 0 ? unit_ : seconds / problem_.node_count;
      gained *= std::clamp((child.bound - seconds) / measure, kLeast, kMost);
      if (child.bound < INFINITY) halves.push_back(std::move(child));
    }
    if (halves.size() < 2) return halves;
    if (gained <= most) continue;
    most = gained;
    best = std::move(halves);
  }
  return best;
}

BranchAndCut::Step BranchAndCut::SolveRelaxed(std::vector<char>* out, int cut_rounds, bool until_small) {
  std::vector<double> bounds;
  for (;;) {
    if (!relaxation_.Solve(cuts_, *out, deadline_)) {
      if (InTime()) failure_ = "lp_solve failed";
      return Step::kFailed;
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

void BranchAndCut::LeaveOut(double seconds, const std::vector<double>& reduced_costs, std::vector<char>* out) const {
  if (best_.seconds == INFINITY) return;
  for (size_t set = 0; set < reduced_costs.size(); ++set)
    if (!(*out)[set] && Hopeless(seconds + reduced_costs[set])) (*out)[set] = 1;
}

bool BranchAndCut::Round(const std::vector<char>& out) {
  const int most_futile = std::max(1, problem_.node_count / 250);  // roundings that end at nothing better
  constexpr double kNearCost = 0.7;  // most reduced cost in large windows, of what a node costs on average
  const auto now = std::chrono::steady_clock::now();
  const Deadline deadline = now + (deadline_ - now) * 9 / 10;
  // Few sets for each node let windows be large: those of little reduced cost, and those of partitions on the
  // way.
  std::vector<char> far = out;
  for (size_t set = 0; set < far.size(); ++set)
    if (relaxation_.reduced_costs()[set] > kNearCost * relaxation_.seconds() / problem_.node_count)
      far[set] = 1;
  auto keep = [&](const Partition& partition) {
    for (int set : partition.sets) far[set] = out[set];
  };
  if (best_.seconds < INFINITY) keep(best_);
  const int largest = std::min(320, problem_.node_count / 3);
  std::mt19937 random(1);
  for (int futile = 0; futile < most_futile && std::chrono::steady_clock::now() < deadline;) {
    std::optional<Partition> rounded = Rounded(random);
    if (!rounded || !Allowed(rounded->sets)) return false;
    keep(*rounded);
    NeighbourhoodSearch search(problem_, far, deadline);
    for (int nodes = 40; nodes <= largest; nodes *= 2) *rounded = search.Improve(*std::move(rounded), nodes);
    NeighbourhoodSearch finer(problem_, out, deadline);
    *rounded = finer.Improve(*std::move(rounded), 80);
    keep(*rounded);
    const bool better = rounded->seconds < best_.seconds;
    futile = better ? 0 : futile + 1;

    if (better) {
      Found(*std::move(rounded));
    } else if (Partition both = search.Improve(best_, largest);
               both.seconds < best_.seconds) {  // of sets of either
      futile = 0;
      Found(std::move(both));
    }
  }
  return true;
}

std::optional<Partition> BranchAndCut::Rounded(std::mt19937& random) const {
  std::uniform_real_distribution<double> change(0, 0.5);
  std::vector<std::pair<double, int>> shares;  // most of all first
  for (const auto& [set, share] : relaxation_.shares()) shares.emplace_back(-share - change(random), set);
  std::sort(shares.begin(), shares.end());
  std::vector<char> covered(problem_.node_count, 0);
  std::vector<int> chosen;
  for (const auto& [share, set] : shares) {
    const std::vector<int>& members = problem_.sets[set].members;
    if (std::any_of(members.begin(), members.end(), [&](int node) { return covered[node]; })) continue;
    for (int node : members) covered[node] = 1;
    chosen.push_back(set);
  }
  for (int node = 0; node < problem_.node_count; ++node) {
    if (covered[node]) continue;
    const int single = problem_.Find({node});
    if (single < 0) return std::nullopt;
    chosen.push_back(single);
  }
  return SplitCycles(problem_, std::move(chosen));
}

void BranchAndCut::Dive(const std::vector<char>& from) {
  for (int attempt = 0; attempt < kDives && InTime(); ++attempt) {
    const double before = best_.seconds;
    std::vector<char> out = from;
    while (InTime() && SolveRelaxed(&out, attempt == 0 ? 0 : 1) == Step::kBranch) {
      std::vector<std::pair<double, int>> nearly;  // most of all first
      for (const auto& [set, share] : relaxation_.shares())
        if (share <= kWhole) nearly.emplace_back(-share, set);
      std::sort(nearly.begin(), nearly.end());
      size_t taken = 0;
      for (const auto& [share, set] : nearly) {
        if (out[set] || (taken > 0 && -share < kNearlyTaken)) continue;
        Take(set, &out);
        if (++taken == kTakenAtOnce) break;
      }
    }
    // What ended at sets that wait for each other goes on with the cuts against them.
    if (best_.seconds == before && best_.seconds < INFINITY) return;
  }
}

void BranchAndCut::Take(int set, std::vector<char>* out) const {
  for (int node : problem_.sets[set].members)
    for (int other : problem_.sets_of[node])
      if (other != set) (*out)[other] = 1;
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
