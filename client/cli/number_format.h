// Numbers as people read and write them. Pure functions; thread safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace fusion {

// A unit of time with the decimals that suit a whole column.
struct TimeUnit {
  const char* name = "s";  // "s", "ms", "us" or "ns"
  double seconds = 1;      // one of the unit
  int decimals = 3;
};

// The unit in which the smallest positive of `seconds` has at least one digit before the point and four
// digits in all. Nothing positive and finite: seconds.
TimeUnit ChooseTimeUnit(const std::vector<double>& seconds);
// Without the unit's name: "381.2".
std::string FormatInUnit(double seconds, const TimeUnit& unit);
// With the unit that suits this value: "381.2 us"; "0 s"; not finite: "-".
std::string FormatSeconds(double seconds);

// Four digits and a decimal prefix: "15.24 MB", "999 B".
std::string FormatBytes(double bytes);
// "4.251 TB/s"; 0 or less: "unknown".
std::string FormatBytesPerSecond(double bytes_per_second);
// Three digits: "2.60x", "12.3x"; 0 or less: "-".
std::string FormatSpeedup(double speedup);
// "93 %", below ten "9.3 %"; not positive or not finite: "-".
std::string FormatShare(double share);
// With groups of three: "1,000,003".
std::string FormatCount(int64_t count);
// "1 fusion", "1,003 fusions".
std::string Counted(int64_t count, absl::string_view noun);
// Reads a whole number as a person writes it: "1000003", "1e6", "2.5e3", "64k", "1M", "2G"; k, M and G are
// powers of 1000. None: it is no number, not whole, or does not fit 64 bits.
std::optional<int64_t> ParseCount(absl::string_view text);
// Two digits: "3.1e-07"; 0: "0".
std::string FormatError(double error);

}  // namespace fusion
