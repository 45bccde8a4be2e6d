// Chooses the candidates that are worth building and timing: in rounds, in predicted order, until none that
// is left can be the fastest, as far as predictions can be trusted.
//
// Predictions of one graph err by a factor in common, which the median of measured over predicted shows, and
// each by one of its own. A candidate that is left is taken to be no faster than its prediction times the
// former, less two standard deviations of the latter; those that may be the fastest by that are next.
// Candidates whose prediction is less sure than that of others come earlier so: what is known already is not
// asked again.
#pragma once

#include <limits>
#include <map>
#include <vector>

namespace fusion {

struct RaceOptions {
  // Standard deviation of log(measured / predicted) of candidates of one graph, from earlier jobs.
  double deviation = 0.25;
  double floor_seconds = 0;  // no candidate can be faster; 0: not known
  // Predicted time of the best cover that is no candidate; infinite: there is none.
  double unseen_seconds = std::numeric_limits<double>::infinity();
  int round = 8;                               // candidates of a round
  int least = 0;                               // so many are timed whatever the bounds say
  int most = std::numeric_limits<int>::max();  // and no more than so many
  bool all = false;                            // time all of them
  // The best measured time so far; infinite: nothing was measured before.
  double best_seconds = std::numeric_limits<double>::infinity();
};

struct RaceCandidate {
  double predicted_seconds = 0;  // positive
  double deviation = 0;          // of log(measured / predicted), where that is known; 0: that of the options
  int group = -1;                // candidates of one group err alike; -1: as no other
};

class Race {
 public:
  // Candidates are named by their positions.
  Race(const std::vector<RaceCandidate>& candidates, RaceOptions options);
  // Takes candidates of which the predicted times are known alone.
  Race(const std::vector<double>& predicted_seconds, RaceOptions options);
  // Among the first `least` candidates, so many of each group come before any group gives more.
  static constexpr int kOfGroup = 2;

  // Returns the positions of the next round, those that may be fastest first; empty: the race is over. Each
  // position is given once; Ended is to be called for it before the next round.
  std::vector<int> Next();
  // Notes the time of a candidate; measured_seconds is 0 for one that failed. A time that is not steady is an
  // upper bound, and says nothing of how predictions err.
  void Ended(int position, double measured_seconds, bool steady = true);

  // Returns the seconds that no candidate that is left is taken to beat; infinite: none is left. Covers that
  // are no candidates are not taken to beat them either.
  double LeastLeft() const;
  // Returns by how much all that was not timed could shorten the best measured time, as a share: 0 to 1.
  double PossibleGain() const;
  int timed() const { return timed_; }  // candidates that did not fail
  // Standard deviation that the bounds are made from: the larger one of earlier jobs' and this one's.
  double Deviation() const;

 private:
  // Returns the shortest time that a candidate with these may take.
  double LowerBound(double predicted_seconds, double deviation) const;
  double Bound(int position) const;
  // Returns the candidate in left_, which is not empty, that may be fastest. Deviations grow with what is
  // measured, each by the same factor, so that the order may change.
  std::vector<int>::iterator First();
  // Returns the candidate in left_ that is next; the end of left_: none is.
  std::vector<int>::iterator Choose();

  std::vector<RaceCandidate> candidates_;
  std::map<int, int> given_of_group_;
  RaceOptions options_;
  std::vector<int> left_;
  std::vector<double> errors_;  // log(measured / predicted), ascending
  double best_;
  int timed_ = 0;
};

}  // namespace fusion
