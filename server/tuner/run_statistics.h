// Statistics of the runs of configurations, and the rule that says which configuration is the best. The
// search chooses by this rule, and tables are sorted by it.
#pragma once

#include <cstdint>
#include <limits>

namespace fusion {

// Two configurations are told apart when their costs differ by so many standard errors of the difference.
inline constexpr double kSeparated = 2;

// Runs with one configuration. Their values may be any positive numbers, from the least to the greatest that
// there are: deviations are kept as shares of the mean, so that nothing overflows.
struct RunStatistics {
  uint64_t count = 0;           // runs that succeeded
  double mean = 0;              // mean of their values
  double relative_squares = 0;  // sum of squared deviations from the mean, over its square
  double minimum = std::numeric_limits<double>::infinity();
  uint64_t failures = 0;

  RunStatistics() = default;
  RunStatistics(uint64_t count, double mean, double squared_deviations, double minimum, uint64_t failures);

  // Adds other runs (Chan, Golub and LeVeque, "Algorithms for computing the sample variance", 1983).
  void Add(const RunStatistics& more);
  // Returns the greatest number where the deviations are greater.
  double squared_deviations() const;
  // Returns whether the runs did not fail more often than not.
  bool works() const { return count > 0 && failures <= count; }
  // Lower is better: the logarithm of the mean, or its negative where the objective is maximised; +infinity
  // where it does not work. Differences of it are relative differences.
  double Cost(bool maximize) const;
};

// RunNoise tells how noisy single runs are, and what can be believed of the runs that there were.
class RunNoise {
 public:
  // Runs of a configuration count until they are removed as they were added.
  void Add(const RunStatistics& runs);
  void Remove(const RunStatistics& runs);

  // Standard deviation of single runs over their mean, over all configurations that ran twice; a guess where
  // there are few.
  double all() const;
  // Returns the same for one configuration: its own where it ran often; some configurations are noisier than
  // others.
  double Of(const RunStatistics& runs) const;
  // Standard error of the mean over the mean. Runs in a row are noisy together: no more than a thousand count
  // as independent.
  double RelativeError(const RunStatistics& runs) const;
  // The rule: a configuration that is known badly counts as worse, as of many that ran once the lowest was
  // lucky. Its number is the cost and 0.75 relative errors on top, 2.5 of a single run. The best
  // configuration has the lowest number; among equal ones it is the first in the order of values.
  double Believed(const RunStatistics& runs, bool maximize) const;
  // Returns what is believed as a value, at most the greatest number.
  double Expected(const RunStatistics& runs, bool maximize) const;

 private:
  // Over configurations with several runs: squared relative deviations of a run, and how many that is the
  // mean of.
  double sum_ = 0, freedom_ = 0;
};

}  // namespace fusion
