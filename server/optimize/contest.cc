#include "server/optimize/contest.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace fusion {

Contest::Contest(const ContestOptions& options, std::vector<WaitingCandidate> waiting, double unseen_seconds,
                 const CostModel& model)
    : options_(options), waiting_(std::move(waiting)), race_(RaceOf(unseen_seconds, model)) {}

Race Contest::RaceOf(double unseen_seconds, const CostModel& model) const {
  std::vector<RaceCandidate> candidates;
  for (const WaitingCandidate& candidate : waiting_)
    candidates.push_back(
        {.predicted_seconds = candidate.seconds, .deviation = candidate.deviation, .group = candidate.group});
  const bool first = searches_ == 1 && options_.most_searches > 1;
  return Race(candidates, {.deviation = model.residual().deviation(),
                           .floor_seconds = options_.floor_seconds,
                           .unseen_seconds = unseen_seconds,
                           .least = (first ? options_.first : options_.least) - tried_,
                           .most = left(),
                           .all = options_.all,
                           .best_seconds = best_seconds_});
}

std::vector<int> Contest::NextRound() {
  round_ = race_.Next();
  std::vector<int> positions;
  for (int waiting : round_) positions.push_back(waiting_[waiting].position);
  return positions;
}

void Contest::EndRound(const v1::CandidateSet& set) {
  for (int waiting : round_) {
    const v1::Candidate& candidate = set.candidates(waiting_[waiting].position).description();
    const double seconds = candidate.outcome() == v1::OK ? candidate.measured().median() : 0;
    race_.Ended(waiting, seconds, candidate.steady());
    ++tried_;
    if (seconds <= 0) continue;
    ++timed_;
    best_seconds_ = std::min(best_seconds_, seconds);
  }
  deviation_ = std::max(deviation_, race_.Deviation());
}

bool Contest::SearchesAgain() const {
  return !options_.all && timed_ > 0 && tried_ >= options_.first && left() > 0 &&
         searches_ < options_.most_searches;
}

void Contest::Continue(std::vector<WaitingCandidate> waiting, double unseen_seconds, const CostModel& model) {
  waiting_ = std::move(waiting);
  ++searches_;
  race_ = RaceOf(unseen_seconds, model);
}

double Contest::Deviation() const { return std::max(deviation_, race_.Deviation()); }

std::string Contest::NotTimed(size_t candidates) const {
  const int untimed = static_cast<int>(candidates) - tried_;
  if (untimed == 0) return "";
  if (left() <= 0)
    return absl::StrFormat("%d candidates of %d were not timed: --candidates permits %d", untimed, candidates,
                           options_.most);
  return absl::StrFormat(
      "%d candidates of %d were not timed: as predicted they cannot be faster (two standard deviations of "
      "%.0f %%); --measure-all times "
      "those of the first search too",
      untimed, candidates, 100 * Deviation());
}

}  // namespace fusion
