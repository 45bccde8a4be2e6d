// The part of BranchAndCut that finds partitions near relaxed solutions.
#include <algorithm>
#include <utility>

#include "server/cover/branch_and_cut.h"
#include "server/cover/neighbourhood_search.h"
#include "server/cover/set_problem.h"

namespace fusion {
namespace {

// Dives take sets that are nearly taken, some at once.
constexpr double kNearlyTaken = 0.7;
constexpr size_t kTakenAtOnce = 8;
constexpr int kDives = 40;
// In smaller problems cutoffs soon find what is better, and windows need not be large, nor take sets of more
// reduced cost.
constexpr int kSoonSolved = 600;
constexpr int kSmallWindow = 40, kLargestWindow = 320;

}  // namespace

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
  const int largest =
      problem_.node_count > kSoonSolved ? std::min(kLargestWindow, problem_.node_count / 3) : kSmallWindow;
  std::mt19937 random(1);
  for (int futile = 0; futile < most_futile && std::chrono::steady_clock::now() < deadline;) {
    std::optional<Partition> rounded = Rounded(random);
    if (!rounded || !Allowed(rounded->sets)) return false;
    keep(*rounded);
    NeighbourhoodSearch search(problem_, far, deadline);
    for (int nodes = kSmallWindow; nodes <= largest; nodes *= 2)
      *rounded = search.Improve(*std::move(rounded), nodes);
    if (problem_.node_count > kSoonSolved)
      *rounded = NeighbourhoodSearch(problem_, out, deadline).Improve(*std::move(rounded), 80);
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
    // A dive that ended at sets that wait for each other goes on with the cuts against them.
    if (best_.seconds == before && best_.seconds < INFINITY) return;
  }
}

void BranchAndCut::Take(int set, std::vector<char>* out) const {
  for (int node : problem_.sets[set].members)
    for (int other : problem_.sets_of[node])
      if (other != set) (*out)[other] = 1;
}

}  // namespace fusion
