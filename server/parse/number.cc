#include "server/parse/number.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/similar_name.h"

namespace fusion {
namespace {

absl::string_view WithoutPlus(absl::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

}  // namespace

absl::StatusOr<double> ParseLiteral(absl::string_view text) {
  const absl::string_view digits = WithoutPlus(text);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::invalid_argument || end != digits.data() + digits.size())
    return absl::InvalidArgumentError(
        absl::StrCat(Shown(text), " is no number; write it like 1.0, -2 or 1e-3"));
  if (error == std::errc::result_out_of_range) {
    // from_chars says the same of values that are too large and of those that are too small; strtod tells
    // them apart.
    const double rounded = std::strtod(std::string(digits).c_str(), nullptr);
    if (std::isinf(rounded))
      return absl::InvalidArgumentError(absl::StrCat(Shown(text), " is too large for a double"));
    return rounded;
  }
  if (!std::isfinite(value))
    return absl::InvalidArgumentError(
        absl::StrCat(Shown(text), " is no number; write it like 1.0, -2 or 1e-3"));
  return value;
}

absl::StatusOr<int64_t> ParseWholeNumber(absl::string_view text) {
  const absl::string_view digits = WithoutPlus(text);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range && end == digits.data() + digits.size())
    return absl::InvalidArgumentError(absl::StrCat(Shown(text), " is too large; a size is at most 2^62"));
  if (error != std::errc() || end != digits.data() + digits.size())
    return absl::InvalidArgumentError(absl::StrCat(Shown(text), " is no whole number"));
  return value;
}

std::string LiteralText(double value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, end);
  const size_t exponent = text.find('e');
  if (exponent == std::string::npos) {
    if (text.find('.') == std::string::npos) text += ".0";
  } else if (text[exponent + 2] == '0') {
    text.erase(exponent + 2, 1);  // to_chars writes at least two digits: 1e-05
  }
  return text;
}

}  // namespace fusion
