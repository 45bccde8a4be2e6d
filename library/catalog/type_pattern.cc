#include "library/catalog/type_pattern.h"

#include <algorithm>
#include <cctype>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace fusion {
namespace {

constexpr int kMaximumElementExtent = 32;

absl::Status Malformed(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("type \"", text, "\": ", why,
                   "; write any, scalar, vector[i], matrix[i,j], SCALAR, VECTOR<n> or MATRIX<r,c>"));
}

// "matrix[i,j]" -> head "matrix", arguments {"i", "j"}. False when the brackets do not stand like that.
bool SplitArguments(absl::string_view text, char open, char close, absl::string_view* head,
                    std::vector<std::string>* arguments) {
  size_t start = text.find(open);
  if (start == absl::string_view::npos || text.back() != close) return false;
  *head = text.substr(0, start);
  absl::string_view inside = text.substr(start + 1, text.size() - start - 2);
  for (absl::string_view part : absl::StrSplit(inside, ',')) {
    arguments->emplace_back(absl::StripAsciiWhitespace(part));
  }
  return true;
}

absl::StatusOr<TypePattern> ParseCollection(absl::string_view text, const std::vector<std::string>& arguments,
                                            const std::vector<Dimension>& dimensions) {
  TypePattern pattern{.kind = TypePattern::Kind::kCollection};
  for (const std::string& argument : arguments) {
    auto it = std::find_if(dimensions.begin(), dimensions.end(),
                           [&](const Dimension& dimension) { return dimension.name == argument; });
    if (it == dimensions.end()) {
      return Malformed(text, absl::StrCat("\"", argument, "\" is not one of the dimensions of the overload"));
    }
    int position = static_cast<int>(it - dimensions.begin());
    if (std::count(pattern.dimensions.begin(), pattern.dimensions.end(), position) > 0) {
      return Malformed(text, absl::StrCat("dimension ", argument, " stands twice"));
    }
    pattern.dimensions.push_back(position);
  }
  return pattern;
}

absl::StatusOr<TypePattern> ParseElement(absl::string_view text, const std::vector<std::string>& arguments) {
  TypePattern pattern{.kind = TypePattern::Kind::kElement};
  for (const std::string& argument : arguments) {
    int constant = 0;
    bool is_number = absl::SimpleAtoi(argument, &constant);
    if (is_number && (constant < 1 || constant > kMaximumElementExtent)) {
      return Malformed(text, absl::StrCat("a constant extent must be in 1 .. ", kMaximumElementExtent));
    }
    if (!is_number && !IsIdentifier(argument)) return Malformed(text, "an extent is a name or a number");
    pattern.shape.push_back(is_number ? absl::StrCat(constant) : argument);
  }
  return pattern;
}

}  // namespace

bool IsIdentifier(absl::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  return std::all_of(text.begin(), text.end(),
                     [](unsigned char c) { return c < 128 && (std::isalnum(c) || c == '_'); });
}

absl::StatusOr<TypePattern> ParseTypePattern(absl::string_view text,
                                             const std::vector<Dimension>& dimensions) {
  if (text == "any") return TypePattern{.kind = TypePattern::Kind::kAny};
  if (text == "scalar") return TypePattern{.kind = TypePattern::Kind::kCollection};
  if (text == "SCALAR") return TypePattern{.kind = TypePattern::Kind::kElement};
  if (text.empty()) return Malformed(text, "is empty");
  absl::string_view head;
  std::vector<std::string> arguments;
  if (SplitArguments(text, '[', ']', &head, &arguments)) {
    if ((head == "vector" && arguments.size() == 1) || (head == "matrix" && arguments.size() == 2)) {
      return ParseCollection(text, arguments, dimensions);
    }
  } else if (SplitArguments(text, '<', '>', &head, &arguments)) {
    if ((head == "VECTOR" && arguments.size() == 1) || (head == "MATRIX" && arguments.size() == 2)) {
      return ParseElement(text, arguments);
    }
  }
  return Malformed(text, "is not a type pattern");
}

std::string TypePatternToString(const TypePattern& pattern, const std::vector<Dimension>& dimensions) {
  switch (pattern.kind) {
    case TypePattern::Kind::kAny:
      return "any";
    case TypePattern::Kind::kElement: {
      if (pattern.shape.empty()) return "SCALAR";
      return absl::StrCat(pattern.shape.size() == 1 ? "VECTOR<" : "MATRIX<",
                          absl::StrJoin(pattern.shape, ","), ">");
    }
    case TypePattern::Kind::kCollection:
      break;
  }
  if (pattern.dimensions.empty()) return "scalar";
  return absl::StrCat(
      pattern.dimensions.size() == 1 ? "vector[" : "matrix[",
      absl::StrJoin(pattern.dimensions, ",",
                    [&](std::string* out, int dimension) { out->append(dimensions[dimension].name); }),
      "]");
}

}  // namespace fusion
