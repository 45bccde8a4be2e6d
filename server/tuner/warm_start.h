// A search begins with what is known of the section, or of the same section elsewhere.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "db/store/tuning_store.h"
#include "fusion/v1/tuner.pb.h"
#include "server/tuner/parameter_space.h"
#include "server/tuner/search.h"

namespace fusion {

struct WarmStart {
  // EXACT, NEAR or OTHER_DEVICE; unspecified: nothing is known.
  v1::Provenance provenance = v1::PROVENANCE_UNSPECIFIED;
  std::string tuning;                      // where it comes from, unless EXACT
  std::vector<TuningMeasurement> earlier;  // the best first; of EXACT with their values
};

// Returns what was measured of this tuning itself in its present generation.
absl::StatusOr<WarmStart> FromSameTuning(TuningStore& store, const TuningRecord& tuning,
                                         const ParameterSpace& space);

// Returns the best configurations of a tuning that was declared otherwise, mapped into `space`. `earlier` is
// empty when none fits.
absl::StatusOr<WarmStart> FromOtherTuning(TuningStore& store, const TuningRecord& tuning,
                                          const ParameterSpace& space);

// Starts from the nearest context of the same program, section and device class; else from another device
// class, the same context or the nearest. Unspecified: there is nothing to start from.
absl::StatusOr<WarmStart> FromNearTuning(TuningStore& store, const TuningKey& key,
                                         const ParameterSpace& space);

// The sum of |log(a/b)| over the sizes. Infinite when the names differ. A size that is not positive is as far
// as e from any other.
double ContextDistance(const v1::SectionDeclaration& a, const v1::SectionDeclaration& b);

// Returns the point of `to` where a point of `from` is: each value at the same place between its bounds, an
// enumerated one the same by name, parameters that `from` does not have at their defaults. Empty: constraints
// do not hold there.
TuningPoint MapPoint(const ParameterSpace& from, const TuningPoint& point, const ParameterSpace& to);

}  // namespace fusion
