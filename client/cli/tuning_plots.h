// Two plots of a tuning as SVG documents: what was measured where, and how the best came to be.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace fusion {

// An axis of the landscape.
struct PlottedParameter {
  enum class Scale { kLinear, kLogarithmic, kPowersOfTwo, kNamed };
  std::string name;
  Scale scale = Scale::kLinear;
  double lower = 0, upper = 1;     // as declared; of a logarithmic scale above 0
  std::vector<std::string> names;  // of kNamed: that of the value i
};

struct PlottedConfiguration {
  std::vector<double> values;  // one for each parameter
  double mean = 0;             // positive
  double standard_error = 0;   // of the mean; 0: not known
  std::string title;           // shown on hovering
};

struct PlottedTuning {
  std::string heading;    // "program/section, n=100"
  std::string objective;  // "time"
  std::string unit;       // "s"
  std::vector<PlottedParameter> parameters;
  std::vector<PlottedConfiguration> configurations;
  int best = -1;      // of the configurations; -1: none
  int defaults = -1;  // the same
  // The expected best after so many evaluations, ascending.
  std::vector<std::pair<uint64_t, double>> convergence;
  uint64_t evaluations = 0;  // so far
};

// The value over the parameter with its standard error; of several parameters a panel each, in which every
// configuration is a point. The best is marked, and so is the default. InvalidArgument: there are no
// configurations or no parameters. Pure; thread safe.
absl::StatusOr<std::string> PlotLandscape(const PlottedTuning& tuning);

// A step line of the expected best over the evaluations. InvalidArgument: there are no points. Pure; thread
// safe.
absl::StatusOr<std::string> PlotTuningConvergence(const PlottedTuning& tuning);

}  // namespace fusion
