// The search for the best configuration of one section in one context: what to try next, what is best so far,
// how sure that is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/tuner/parameter_space.h"

namespace fusion {

// Statistics of runs with one configuration.
struct TuningMeasurement {
  uint64_t proposal = 0;  // 0: the choice in force, or of an earlier run
  TuningPoint point;      // canonical
  uint64_t count = 0;     // runs that succeeded
  double mean = 0;
  double squared_deviations = 0;  // sum over the runs, from the mean
  double minimum = 0;
  uint64_t failures = 0;
};

struct TuningCandidate {
  uint64_t id = 0;  // > 0
  TuningPoint point;
};

struct TuningState {
  TuningPoint best;
  double value = 0;           // expected, of the best; 0: not known
  double relative_error = 0;  // standard error of the value over it
  v1::TuningPhase phase = v1::EXPLORING;
  v1::Provenance provenance = v1::PROVENANCE_UNSPECIFIED;
  uint64_t generation = 1;
  uint64_t drifts = 0;
  uint64_t evaluations = 0;  // runs of candidates in this generation
};

struct TuningSearchOptions {
  std::string strategy;  // "": the portfolio
  uint64_t seed = 1;
  // Numbers of the candidates go on from here: they are unique in a tuning although the server was started
  // again.
  uint64_t first_candidate = 1;
  uint64_t generation = 1;
};

// The names that TuningSearchOptions.strategy may have.
const std::vector<std::string>& TuningStrategyNames();

// Deterministic: the same calls give the same answers. Knows no clock. Not thread safe.
class TuningSearch {
 public:
  // InvalidArgument: there is no such strategy; the message names those there are.
  static absl::StatusOr<std::unique_ptr<TuningSearch>> Create(std::shared_ptr<const ParameterSpace> space,
                                                              const TuningSearchOptions& options);
  ~TuningSearch();

  // Takes what earlier runs measured, before the first Propose. EXACT: the statistics count as measured here.
  // NEAR and OTHER_DEVICE: the configurations, the best first, are tried first, and their values say nothing.
  void Remember(const std::vector<TuningMeasurement>& earlier, v1::Provenance provenance);

  // Returns a configuration worth a run; none: nothing better is expected, or the strategies wait for
  // results. May take milliseconds. A candidate is outstanding until it is observed or forgotten.
  std::optional<TuningCandidate> Propose();
  // Does the same for programs that wait: returns another of the points that looked good last time, if there
  // is one, without a new look at all points.
  std::optional<TuningCandidate> ProposeQuickly();
  // Takes constant time. Measurements of candidates of an older generation, or that were forgotten, count as
  // well as any.
  void Observe(const TuningMeasurement& measurement);
  // The program that had the candidate is gone.
  void Forget(uint64_t candidate);
  size_t outstanding() const;

  // Begins anew with the defaults; what is measured is forgotten, and so are all outstanding candidates.
  void Reset();

  const TuningState& state() const;
  // Returns what is known of each configuration in this generation, the best first, those that only failed
  // last.
  std::vector<TuningMeasurement> Measurements(size_t most) const;
  size_t configurations() const;
  const ParameterSpace& space() const;

 private:
  struct Parts;
  explicit TuningSearch(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace fusion
