#include "server/rank/rank.h"

#include <algorithm>

namespace fusion {
namespace {

// Wide intervals make no ties of candidates of which even the fastest samples are slower by more than that.
constexpr double kMostTie = 1.05;

bool IsOk(const v1::Candidate& candidate) { return candidate.outcome() == v1::OK; }

// Returns the shortest time that a candidate may take. A time that is not steady is mostly too long.
double LeastSeconds(const v1::Candidate& candidate) {
  return candidate.steady() ? candidate.measured().median() : candidate.measured().low();
}

void NumberRanks(std::vector<v1::Candidate>* candidates) {
  for (size_t i = 0; i < candidates->size(); ++i) (*candidates)[i].set_rank(static_cast<int>(i) + 1);
}

}  // namespace

void RankCandidates(std::vector<v1::Candidate>* candidates) {
  std::stable_sort(candidates->begin(), candidates->end(),
                   [](const v1::Candidate& a, const v1::Candidate& b) {
                     if (IsOk(a) != IsOk(b)) return IsOk(a);
                     if (IsOk(a) && a.measured().median() != b.measured().median())
                       return a.measured().median() < b.measured().median();
                     return a.predicted_rank() < b.predicted_rank();
                   });
  if (!candidates->empty() && IsOk(candidates->front())) {
    const v1::Statistics& fastest = candidates->front().measured();
    const double reach = std::min(fastest.high(), kMostTie * fastest.median());
    // The intervals of a contiguous run of candidates may overlap that of the fastest, and others in between
    // not.
    auto end =
        std::stable_partition(candidates->begin(), candidates->end(), [&](const v1::Candidate& candidate) {
          return IsOk(candidate) && candidate.measured().low() <= reach;
        });
    std::stable_sort(candidates->begin(), end, [](const v1::Candidate& a, const v1::Candidate& b) {
      return a.predicted_rank() < b.predicted_rank();
    });
    const bool several = end - candidates->begin() > 1;
    for (auto it = candidates->begin(); it != candidates->end(); ++it) it->set_tie(several && it < end);
  }
  NumberRanks(candidates);
}

void RankAsPredicted(std::vector<v1::Candidate>* candidates) {
  std::stable_sort(candidates->begin(), candidates->end(),
                   [](const v1::Candidate& a, const v1::Candidate& b) {
                     return IsOk(a) != IsOk(b) ? IsOk(a) : a.predicted_rank() < b.predicted_rank();
                   });
  NumberRanks(candidates);
}

std::vector<int> ChooseFinalists(const std::vector<v1::Candidate>& candidates, int count) {
  std::vector<int> finalists;
  for (size_t i = 0; i < candidates.size(); ++i)
    if (IsOk(candidates[i])) finalists.push_back(static_cast<int>(i));
  std::stable_sort(finalists.begin(), finalists.end(),
                   [&](int a, int b) { return LeastSeconds(candidates[a]) < LeastSeconds(candidates[b]); });
  if (static_cast<int>(finalists.size()) > count) finalists.resize(count);
  return finalists;
}

bool IsReliable(const std::vector<v1::Candidate>& candidates) {
  const v1::Candidate* fastest = nullptr;
  for (const v1::Candidate& candidate : candidates)
    if (IsOk(candidate) &&
        (fastest == nullptr || candidate.measured().median() < fastest->measured().median()))
      fastest = &candidate;
  if (fastest == nullptr) return true;
  return fastest->steady() &&
         std::none_of(candidates.begin(), candidates.end(), [&](const v1::Candidate& candidate) {
           return IsOk(candidate) && !candidate.steady() &&
                  candidate.measured().low() < fastest->measured().median();
         });
}

}  // namespace fusion
