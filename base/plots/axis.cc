#include "base/plots/axis.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"

namespace fusion {
namespace {

// Comparisons of ticks with the ends of an axis forgive rounding.
constexpr double kRounding = 1e-9;

}  // namespace

LogAxis::LogAxis(double low, double high, double from, double to)
    : low_(low), high_(high), from_(from), to_(to) {}

double LogAxis::At(double value) const {
  const double share = (std::log(value) - std::log(low_)) / (std::log(high_) - std::log(low_));
  return from_ + share * (to_ - from_);
}

std::vector<double> LinearTicks(double low, double high, int most) {
  double step = std::pow(10.0, std::floor(std::log10((high - low) / most)));
  for (const double factor : {2.0, 2.5, 2.0, 2.0}) {
    if ((high - low) / step < most) break;
    step *= factor;
  }
  std::vector<double> ticks;
  for (double count = std::ceil(low / step - kRounding); count * step <= high + step * kRounding; ++count)
    ticks.push_back(count * step);
  return ticks;
}

std::vector<double> LogTicks(double low, double high) {
  const double decades = std::log10(high) - std::log10(low);
  std::vector<double> mantissas = {1};
  if (decades <= 3) mantissas = {1, 2, 5};
  if (decades <= 1) mantissas = {1, 1.5, 2, 3, 4, 5, 6, 8};
  const int stride = std::max(1, static_cast<int>(std::ceil(decades / 10)));
  std::vector<double> ticks;
  for (int decade = static_cast<int>(std::floor(std::log10(low))); decade <= std::log10(high); ++decade) {
    if (decade % stride != 0) continue;
    for (double mantissa : mantissas) {
      const double tick = mantissa * std::pow(10.0, decade);
      if (tick >= low * (1 - kRounding) && tick <= high * (1 + kRounding)) ticks.push_back(tick);
    }
  }
  return ticks;
}

std::vector<double> RatioTicks(double high) {
  if (high > 2) return LogTicks(1, high);
  double step = 0.2;
  for (double finer : {0.1, 0.05, 0.02, 0.01})
    if ((high - 1) / finer <= 8) step = finer;
  std::vector<double> ticks;
  for (int i = 0; 1 + i * step <= high * (1 + kRounding); ++i) ticks.push_back(1 + i * step);
  return ticks;
}

std::string TimeLabel(double seconds) {
  // From 999.5 on three digits round to the next unit's 1.
  if (seconds < 999.5e-9) return absl::StrFormat("%.3g ns", seconds * 1e9);
  if (seconds < 999.5e-6) return absl::StrFormat("%.3g us", seconds * 1e6);
  if (seconds < 999.5e-3) return absl::StrFormat("%.3g ms", seconds * 1e3);
  return absl::StrFormat("%.3g s", seconds);
}

}  // namespace fusion
