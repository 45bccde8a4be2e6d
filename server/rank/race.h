// Which candidates are worth building and timing: rounds in predicted order, until none that is left can be the fastest, as far as
// predictions can be trusted.
//
// Predictions of one graph err by a factor in common, which the median of measured over predicted shows, and each by one of its own.
// A candidate that is left is taken to be no faster than its prediction times the former, less two standard deviations of the latter.
#pragma once

#include <limits>
#include <vector>

namespace fusion {

struct RaceOptions {
  double deviation = 0.25;    // standard deviation of log(measured / predicted) of candidates of one graph, from earlier jobs
  double floor_seconds = 0;   // no candidate can be faster; 0: not known
  // Predicted time of the best cover that is no candidate; infinite: there is none.
  double unseen_seconds = std::numeric_limits<double>::infinity();
  int round = 8;              // candidates of a round
  int least = 0;              // so many are timed whatever the bounds say
  bool all = false;           // time all of them
};

class Race {
 public:
  // Positive predicted times, by position.
  Race(std::vector<double> predicted_seconds, RaceOptions options);

  // Positions of the next round, best predicted first; empty: the race is over. Each position is given once; Ended is to be called
  // for it before the next round.
  std::vector<int> Next();
  // measured_seconds: 0 for a candidate that failed.
  void Ended(int position, double measured_seconds);

  // What no candidate that is left is taken to beat, seconds; infinite: none is left. Says the same of covers that are no candidates.
  double LeastLeft() const;
  // By how much all that was not timed could shorten the best measured time, as a share of it: 0 to 1.
  double PossibleGain() const;
  int timed() const { return timed_; }  // that did not fail
  // Standard deviation that the bounds are made from: the larger one of earlier jobs' and this one's.
  double Deviation() const;

 private:
  double LowerBound(double predicted_seconds) const;

  const std::vector<double> predicted_;
  const RaceOptions options_;
  std::vector<int> left_;       // best predicted first
  std::vector<double> errors_;  // log(measured / predicted), ascending
  double best_ = std::numeric_limits<double>::infinity();
  int timed_ = 0;
};

}  // namespace fusion
