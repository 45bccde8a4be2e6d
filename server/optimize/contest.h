// The candidates of a job: which are timed next, whether another search may find better ones, and when no
// candidate that is left can win. It knows no workers and no store.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "fusion/v1/candidates.pb.h"
#include "server/model/cost_model.h"
#include "server/optimize/plans.h"
#include "server/rank/race.h"

namespace fusion {

struct ContestOptions {
  int most = 0;   // candidates of the job
  int first = 0;  // so many of the first search are timed before another one
  int least = 0;  // so many are timed, as far as there are, whatever the bounds say
  int most_searches = 1;
  bool all = false;          // times all of the first search, and makes no other
  double floor_seconds = 0;  // see RaceOptions
};

class Contest {
 public:
  // `waiting` are the candidates of the first search; RaceOptions explains `unseen_seconds`.
  Contest(const ContestOptions& options, std::vector<WaitingCandidate> waiting, double unseen_seconds,
          const CostModel& model);

  // Returns the positions (WaitingCandidate::position) of the next round; empty: the contest is over.
  // EndRound must be called before the next round.
  std::vector<int> NextRound();
  // `set` has the candidates of all positions so far; those of the round have their outcomes.
  void EndRound(const v1::CandidateSet& set);

  // Returns whether another search is due. It has nothing to add once `most` were tried, or if all are to be.
  bool SearchesAgain() const;
  // Goes on with what another search has found by what `model` has learned of the job.
  void Continue(std::vector<WaitingCandidate> waiting, double unseen_seconds, const CostModel& model);
  // Goes on without further searches.
  void StopSearching() { options_.most_searches = 0; }

  int left() const { return options_.most - tried_; }  // candidates that may still be tried
  int searches() const { return searches_; }
  int timed() const { return timed_; }  // candidates that did not fail
  // Race defines both: the gain is that of the last search, the deviation the largest of all searches.
  double PossibleGain() const { return race_.PossibleGain(); }
  double Deviation() const;
  // Says why some of so many candidates were not timed; empty: all were.
  std::string NotTimed(size_t candidates) const;

 private:
  Race RaceOf(double unseen_seconds, const CostModel& model) const;

  ContestOptions options_;
  std::vector<WaitingCandidate> waiting_;
  int searches_ = 1;
  int tried_ = 0, timed_ = 0;
  double deviation_ = 0;  // the largest of a round
  double best_seconds_ = std::numeric_limits<double>::infinity();
  Race race_;
  std::vector<int> round_;  // positions in waiting_
};

}  // namespace fusion
