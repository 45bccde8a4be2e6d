#include "client/cli/number_format.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "absl/numeric/int128.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace fusion {
namespace {

// Decimals that show `digits` digits of a value that is at least 1.
int Decimals(double value, int digits) {
  int before_point = 1;
  for (double rest = value; rest >= 10; rest /= 10) ++before_point;
  return before_point >= digits ? 0 : digits - before_point;
}

std::string WithDecimalPrefix(double value, const char* unit) {
  static constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  int prefix = 0;
  while (std::fabs(value) >= 999.95 && prefix < 6) {
    value /= 1000;
    ++prefix;
  }
  if (prefix == 0) return absl::StrFormat("%.0f %s", value, unit);
  return absl::StrFormat("%.*f %s%s", Decimals(std::fabs(value), 4), value, kPrefixes[prefix], unit);
}

}  // namespace

TimeUnit ChooseTimeUnit(const std::vector<double>& seconds) {
  double smallest = 0;
  for (double value : seconds) {
    if (std::isfinite(value) && value > 0 && (smallest == 0 || value < smallest)) smallest = value;
  }
  if (smallest == 0) return TimeUnit{};
  TimeUnit unit = smallest >= 1      ? TimeUnit{"s", 1}
                  : smallest >= 1e-3 ? TimeUnit{"ms", 1e-3}
                  : smallest >= 1e-6 ? TimeUnit{"us", 1e-6}
                                     : TimeUnit{"ns", 1e-9};
  unit.decimals = Decimals(smallest / unit.seconds, 4);
  return unit;
}

std::string FormatInUnit(double seconds, const TimeUnit& unit) {
  if (!std::isfinite(seconds)) return "-";
  return absl::StrFormat("%.*f", unit.decimals, seconds / unit.seconds);
}

std::string FormatSeconds(double seconds) {
  if (!std::isfinite(seconds)) return "-";
  if (seconds == 0) return "0 s";
  TimeUnit unit = ChooseTimeUnit({std::fabs(seconds)});
  return absl::StrCat(FormatInUnit(seconds, unit), " ", unit.name);
}

std::string FormatBytes(double bytes) { return WithDecimalPrefix(bytes, "B"); }

std::string FormatBytesPerSecond(double bytes_per_second) {
  if (!std::isfinite(bytes_per_second) || bytes_per_second <= 0) return "unknown";
  return WithDecimalPrefix(bytes_per_second, "B/s");
}

std::string FormatSpeedup(double speedup) {
  if (!std::isfinite(speedup) || speedup <= 0) return "-";
  if (speedup >= 1e6) return absl::StrFormat("%.3gx", speedup);
  return absl::StrFormat("%.*fx", speedup < 10 ? 2 : speedup < 100 ? 1 : 0, speedup);
}

std::string FormatShare(double share) {
  if (!std::isfinite(share) || share <= 0) return "-";
  return absl::StrFormat("%.*f %%", share * 100 < 9.95 ? 1 : 0, share * 100);
}

std::string FormatCount(int64_t count) {
  std::string digits = absl::StrCat(count);
  const size_t first = count < 0 ? 1 : 0;
  for (size_t position = digits.size(); position > first + 3;) {
    position -= 3;
    digits.insert(position, 1, ',');
  }
  return digits;
}

std::string Counted(int64_t count, absl::string_view noun) {
  return absl::StrCat(FormatCount(count), " ", noun, count == 1 ? "" : "s");
}

std::optional<int64_t> ParseCount(absl::string_view text) {
  const bool negative = absl::ConsumePrefix(&text, "-");
  absl::int128 value = 0;
  constexpr absl::int128 kMost = std::numeric_limits<int64_t>::max();
  int exponent = 0;
  bool any = false, behind_point = false;
  for (; !text.empty() && (absl::ascii_isdigit(text[0]) || (text[0] == '.' && !behind_point));
       text.remove_prefix(1)) {
    if (text[0] == '.') {
      behind_point = true;
      continue;
    }
    any = true;
    value = 10 * value + (text[0] - '0');
    if (value > kMost) return std::nullopt;
    exponent -= behind_point;
  }
  if (!any) return std::nullopt;
  if (absl::ConsumePrefix(&text, "e") || absl::ConsumePrefix(&text, "E")) {
    int power = 0;
    if (text.empty() || !std::all_of(text.begin(), text.end(), absl::ascii_isdigit) ||
        !absl::SimpleAtoi(text, &power) || power > 1000)
      return std::nullopt;
    exponent += power;
    text = "";
  } else if (!text.empty()) {
    const size_t suffix = absl::string_view("kMG").find(text[0]);
    if (suffix == absl::string_view::npos) return std::nullopt;
    exponent += 3 * (static_cast<int>(suffix) + 1);
    text.remove_prefix(1);
  }
  if (!text.empty()) return std::nullopt;
  for (; exponent > 0 && value != 0; --exponent) {
    value *= 10;
    if (value > kMost) return std::nullopt;
  }
  for (; exponent < 0; ++exponent) {
    if (value % 10 != 0) return std::nullopt;
    value /= 10;
  }
  return static_cast<int64_t>(negative ? -value : value);
}

std::string FormatError(double error) {
  if (error == 0) return "0";
  if (!std::isfinite(error)) return "-";
  return absl::StrFormat("%.1e", error);
}

}  // namespace fusion
