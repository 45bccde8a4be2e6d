#include "server/parse/type_name.h"

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/similar_name.h"
#include "library/catalog/type.h"
#include "library/catalog/type_pattern.h"

namespace fusion {
namespace {

constexpr std::array<absl::string_view, 8> kKeywords = {"size",   "input",  "return", "scalar",
                                                        "vector", "matrix", "f32",    "f64"};

// The number that `digits` spells, 0 when it is out of range; nullopt when it is no number.
std::optional<int> ElementSize(absl::string_view digits) {
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit)) return std::nullopt;
  if (digits[0] == '0' && digits.size() > 1) return std::nullopt;
  if (digits.size() > 2) return 0;
  int value = 0;
  for (char digit : digits) value = value * 10 + (digit - '0');
  return value <= kLargestElementSize ? value : 0;
}

}  // namespace

bool IsKeyword(absl::string_view word) {
  return std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end();
}

std::optional<std::vector<int>> ElementShape(absl::string_view word) {
  if (word == "SCALAR") return std::vector<int>{};
  if (absl::StartsWith(word, "VECTOR")) {
    const std::optional<int> size = ElementSize(word.substr(6));
    if (size) return std::vector<int>{*size};
  } else if (absl::StartsWith(word, "MATRIX")) {
    const absl::string_view shape = word.substr(6);
    const size_t x = shape.find('x');
    if (x == absl::string_view::npos) return std::nullopt;
    const std::optional<int> rows = ElementSize(shape.substr(0, x)),
                             columns = ElementSize(shape.substr(x + 1));
    if (rows && columns) return std::vector<int>{*rows, *columns};
  }
  return std::nullopt;
}

std::string UnknownTypeMessage(absl::string_view word, bool may_suggest) {
  std::string meant;
  std::string upper = absl::AsciiStrToUpper(word.substr(0, 64));
  if (absl::StartsWith(upper, "MATRIX")) std::replace(upper.begin() + 6, upper.end(), 'X', 'x');
  if (upper.size() > 6 && ElementShape(upper)) {
    meant = upper;
  } else if (word == "float" || word == "double") {
    meant = word == "float" ? "f32 scalar" : "f64 scalar";
  } else if (upper == "VECTOR" || upper == "MATRIX") {
    meant = upper == "VECTOR" ? "VECTOR3 or vector[n]" : "MATRIX3x3 or matrix[m,n]";
  } else if (may_suggest) {
    meant = SimilarName(word, {kKeywords.begin(), kKeywords.end()});
  }
  return absl::StrCat("unknown type ", Shown(word),
                      meant.empty()
                          ? "; types are scalar, vector[n], matrix[m,n], SCALAR, VECTORn and MATRIXrxc"
                          : DidYouMean(meant));
}

std::string BadNameMessage(absl::string_view word) {
  if (word.empty()) return "the name is empty";
  if (word.size() > kLongestName)
    return absl::StrCat("the name ", Shown(word), " has ", word.size(), " characters; at most ", kLongestName,
                        " are allowed");
  if (!IsIdentifier(word))
    return absl::StrCat("a name consists of letters, digits and _ and does not start with a digit");
  if (IsKeyword(word) || ElementShape(word))
    return absl::StrCat(word, " is a word of the language; choose another name");
  return "";
}

}  // namespace fusion
