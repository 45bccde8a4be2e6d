// What runs of configurations tell, and which configuration is the best by that. The search chooses by this
// rule, and tables are sorted by it.
#pragma once

#include <cstdint>
#include <limits>

namespace fusion {

// Runs with one configuration. Of any positive numbers, from the least to the greatest that there are:
// deviations are kept as shares of the mean, so that nothing overflows.
struct RunStatistics {
  uint64_t count = 0;           // of runs that succeeded
  double mean = 0;              // of their values
  double relative_squares = 0;  // sum of squared deviations from the mean, over its square
  double minimum = std::numeric_limits<double>::infinity();
  uint64_t failures = 0;

  RunStatistics() = default;
  RunStatistics(uint64_t count, double mean, double squared_deviations, double minimum, uint64_t failures);

  // Adds other runs (Chan, Golub and LeVeque, "Algorithms for computing the sample variance", 1983).
  void Add(const RunStatistics& more);
  // The greatest number where they are greater.
  double squared_deviations() const;
  // They did not fail more often than not.
  bool works() const { return count > 0 && failures <= count; }
  // Lower is better: the logarithm of the mean, or its negative where the objective is maximised; +infinity
  // where it does not work. Differences of it are relative differences.
  double Cost(bool maximize) const;
};

// How noisy single runs are, and what can be believed of those that there were.
class RunNoise {
 public:
  // Runs of a configuration count until they are removed as they were added.
  void Add(const RunStatistics& runs);
  void Remove(const RunStatistics& runs);

  // Standard deviation of single runs over their mean, over all configurations that ran twice; a guess where
  // there are few.
  double all() const;
  // The same of one: its own where it ran often; some configurations are noisier than others.
  double Of(const RunStatistics& runs) const;
  // Standard error of the mean over it. Runs in a row are noisy together: no more than a thousand count as
  // independent.
  double RelativeError(const RunStatistics& runs) const;
  // The rule: what is known badly counts as worse, as of many that ran once the lowest was lucky. It is the
  // cost and 0.75 relative errors on top, 2.5 of a single run. The best configuration has the lowest of
  // these; among equal ones it is the first in the order of values.
  double Believed(const RunStatistics& runs, bool maximize) const;
  // As a value: at most the greatest number.
  double Expected(const RunStatistics& runs, bool maximize) const;

 private:
  // Over configurations with several runs: squared relative deviations of a run, and how many that is the
  // mean of.
  double sum_ = 0, freedom_ = 0;
};

}  // namespace fusion
