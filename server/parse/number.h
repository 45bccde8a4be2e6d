// Numbers of the .fuse language.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusion {

// Reads "1.0", "-2", "1e-3", rounded to the nearest double; too small numbers give 0. InvalidArgument when
// the text is no number or its value is beyond double.
absl::StatusOr<double> ParseLiteral(absl::string_view text);

// Reads "1000000", "-5". InvalidArgument when the text is no whole number or does not fit 64 bits.
absl::StatusOr<int64_t> ParseWholeNumber(absl::string_view text);

// Returns the shortest text that ParseLiteral reads back as `value`, with a point or an exponent: "1.0",
// "-2.5", "1e-30". Requires a finite value.
std::string LiteralText(double value);

}  // namespace fusion
