#include "server/rank/rank.h"

#include <algorithm>

namespace fusion {

void RankCandidates(std::vector<v1::Candidate>* candidates) {
  auto ok = [](const v1::Candidate& candidate) { return candidate.outcome() == v1::OK; };
  std::stable_sort(candidates->begin(), candidates->end(),
                   [&](const v1::Candidate& a, const v1::Candidate& b) {
                     if (ok(a) != ok(b)) return ok(a);
                     if (ok(a) && a.measured().median() != b.measured().median())
                       return a.measured().median() < b.measured().median();
                     return a.predicted_rank() < b.predicted_rank();
                   });
  if (!candidates->empty() && ok(candidates->front())) {
    const double fastest_high = candidates->front().measured().high();
    // The intervals of a contiguous run of candidates may overlap that of the fastest, and others in between
    // not.
    auto end =
        std::stable_partition(candidates->begin(), candidates->end(), [&](const v1::Candidate& candidate) {
          return ok(candidate) && candidate.measured().low() <= fastest_high;
        });
    std::stable_sort(candidates->begin(), end, [](const v1::Candidate& a, const v1::Candidate& b) {
      return a.predicted_rank() < b.predicted_rank();
    });
    const bool several = end - candidates->begin() > 1;
    for (auto it = candidates->begin(); it != candidates->end(); ++it) it->set_tie(several && it < end);
  }
  for (size_t i = 0; i < candidates->size(); ++i) (*candidates)[i].set_rank(static_cast<int>(i) + 1);
}

std::vector<int> ChooseFinalists(const std::vector<v1::Candidate>& candidates, int count) {
  std::vector<int> finalists;
  for (size_t i = 0; i < candidates.size(); ++i)
    if (candidates[i].outcome() == v1::OK) finalists.push_back(static_cast<int>(i));
  std::stable_sort(finalists.begin(), finalists.end(), [&](int a, int b) {
    return candidates[a].measured().median() < candidates[b].measured().median();
  });
  if (static_cast<int>(finalists.size()) > count) finalists.resize(count);
  return finalists;
}

}  // namespace fusion
