// Axes of a plot and their ticks.
#pragma once

#include <string>
#include <vector>

namespace fusion {

// Puts values from low to high, both above 0, evenly by their logarithm between two places, in pixels. `to`
// may be below `from`: in SVG y points down.
class LogAxis {
 public:
  LogAxis(double low, double high, double from, double to);
  double low() const { return low_; }
  double high() const { return high_; }
  double At(double value) const;

 private:
  double low_, high_, from_, to_;
};

// Puts values from low to high evenly by the values themselves, between such places. high is above low.
class LinearAxis {
 public:
  LinearAxis(double low, double high, double from, double to)
      : low_(low), high_(high), from_(from), to_(to) {}
  double At(double value) const { return from_ + (value - low_) / (high_ - low_) * (to_ - from_); }

 private:
  double low_, high_, from_, to_;
};

// Round values from low to high, ascending: multiples of 1, 2 or 5 times a power of ten, at most `most` of
// them (most: 4 or more).
std::vector<double> LinearTicks(double low, double high, int most);

// Ticks from low to high, ascending, at most 12: round values in each power of ten, fewer of them over more
// powers. At least two when high is 2.5 times low or more.
std::vector<double> LogTicks(double low, double high);

// Returns such ticks for ratios from 1 to high; up to 2, in even steps of a round share: 1, 1.02, 1.04 ...
std::vector<double> RatioTicks(double high);

// Three digits with the unit that suits: "1.05 ms", "200 us". `seconds` is above 0.
std::string TimeLabel(double seconds);

}  // namespace fusion
