// Integer expressions over static parameters: flops and constraints of function descriptions. They may come
// with a submission, so depth and overflow are checked.
#include <algorithm>
#include <cctype>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "library/catalog/elementary_function.h"

namespace fusion {
namespace {

constexpr int kMaximumDepth = 64;

// expression = term {("+" | "-") term};  term = factor {("*" | "/") factor};
// factor = number | name | "-" factor | "(" expression ")".
class ExpressionParser {
 public:
  ExpressionParser(absl::string_view text, const std::vector<std::string>& names,
                   const StaticParameters& values)
      : text_(text), names_(names), values_(values) {}

  absl::StatusOr<int64_t> Expression() {
    absl::StatusOr<int64_t> left = Term();
    while (left.ok() && (Next() == '+' || Next() == '-')) {
      char sign = text_[position_++];
      left = Apply(sign, *left, Term());
    }
    return left;
  }

  // Two expressions and a comparison between them.
  absl::StatusOr<bool> Comparison() {
    absl::StatusOr<int64_t> left = Expression();
    if (!left.ok()) return left.status();
    for (absl::string_view sign : {"<=", ">=", "==", "!=", "<", ">"}) {
      if (!Accept(sign)) continue;
      FUSION_ASSIGN_OR_RETURN(int64_t right, Expression());
      if (sign == "<=") return *left <= right;
      if (sign == ">=") return *left >= right;
      if (sign == "==") return *left == right;
      if (sign == "!=") return *left != right;
      return sign == "<" ? *left < right : *left > right;
    }
    return Error("a comparison (< <= > >= == !=) is missing");
  }

  bool Accept(absl::string_view token) {
    Next();
    if (text_.substr(position_, token.size()) != token) return false;
    position_ += token.size();
    return true;
  }

  bool AtEnd() { return Next() == '\0'; }

  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " at column ", position_ + 1, " of \"", text_, "\""));
  }

 private:
  // The next character after spaces; 0 at the end.
  char Next() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
    return position_ < text_.size() ? text_[position_] : '\0';
  }

  absl::StatusOr<int64_t> Apply(char sign, int64_t left, const absl::StatusOr<int64_t>& right) const {
    if (!right.ok()) return right;
    int64_t value = 0;
    bool overflow = false;
    if (sign == '+') overflow = __builtin_add_overflow(left, *right, &value);
    if (sign == '-') overflow = __builtin_sub_overflow(left, *right, &value);
    if (sign == '*') overflow = __builtin_mul_overflow(left, *right, &value);
    if (sign == '/') {
      if (*right == 0) return Error("division by zero");
      overflow = left == std::numeric_limits<int64_t>::min() && *right == -1;
      if (!overflow) value = left / *right;
    }
    if (overflow) return Error("overflow");
    return value;
  }

  absl::StatusOr<int64_t> Term() {
    absl::StatusOr<int64_t> left = Factor();
    while (left.ok() && (Next() == '*' || Next() == '/')) {
      char sign = text_[position_++];
      left = Apply(sign, *left, Factor());
    }
    return left;
  }

  absl::StatusOr<int64_t> Factor() {
    if (++depth_ > kMaximumDepth) return Error("expression nested too deeply");
    absl::StatusOr<int64_t> value = Primary();
    --depth_;
    return value;
  }

  absl::StatusOr<int64_t> Primary() {
    char next = Next();
    if (next == '-') {
      ++position_;
      return Apply('-', 0, Factor());
    }
    if (next == '(') {
      ++position_;
      absl::StatusOr<int64_t> value = Expression();
      if (value.ok() && !Accept(")")) return Error("\")\" is missing");
      return value;
    }
    size_t start = position_;
    while (position_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[position_])) || text_[position_] == '_')) {
      ++position_;
    }
    absl::string_view word = text_.substr(start, position_ - start);
    if (word.empty()) return Error("a number or a name is missing");
    int64_t number = 0;
    if (std::isdigit(static_cast<unsigned char>(word[0]))) {
      if (!absl::SimpleAtoi(word, &number)) return Error("not a number");
      return number;
    }
    for (size_t i = 0; i < names_.size() && i < values_.size(); ++i) {
      if (names_[i] == word) return values_[i];
    }
    return Error(absl::StrCat("unknown name \"", word, "\""));
  }

  absl::string_view text_;
  const std::vector<std::string>& names_;
  const StaticParameters& values_;
  size_t position_ = 0;
  int depth_ = 0;
};

}  // namespace

absl::StatusOr<int64_t> EvaluateExpression(const std::string& expression,
                                           const std::vector<std::string>& names,
                                           const StaticParameters& values) {
  ExpressionParser parser(expression, names, values);
  absl::StatusOr<int64_t> value = parser.Expression();
  if (value.ok() && !parser.AtEnd()) return parser.Error("unexpected text");
  return value;
}

absl::StatusOr<bool> EvaluateConstraint(const std::string& constraint, const std::vector<std::string>& names,
                                        const StaticParameters& values) {
  ExpressionParser parser(constraint, names, values);
  if (parser.AtEnd()) return true;
  bool all = true;
  do {
    absl::StatusOr<bool> holds = parser.Comparison();
    if (!holds.ok()) return holds;
    all = all && *holds;
  } while (parser.Accept("&&"));
  if (!parser.AtEnd()) return parser.Error("unexpected text");
  return all;
}

bool Offered(const Overload& overload, const Implementation& implementation, const StaticParameters& values,
             v1::DataType data_type) {
  const auto& types = implementation.data_types;
  if (!types.empty() && std::find(types.begin(), types.end(), data_type) == types.end()) return false;
  // Its text was checked with the definition; where it has no value here ("8 / (n - 3) > 0"), it does not
  // hold.
  return EvaluateConstraint(implementation.constraint, overload.static_parameters, values).value_or(false);
}

int ThreadsPerElement(const Implementation& implementation, const std::vector<int>& result_shape) {
  int entries = 1;
  for (int extent : result_shape) entries *= extent;
  switch (implementation.threads) {
    case v1::PER_RESULT_ENTRY:
      return entries;
    case v1::PER_RESULT_ROW:
      return result_shape.empty() ? 1 : result_shape[0];
    case v1::PER_RESULT_TILE: {
      int tiles = 1;
      for (int extent : result_shape) tiles *= (extent + kResultTile - 1) / kResultTile;
      return tiles;
    }
    case v1::PER_RESULT_QUAD: {
      if (result_shape.empty()) return 1;
      const int columns = result_shape.back();
      return entries / columns * ((columns + kResultTile - 1) / kResultTile);
    }
    case v1::WARP_PER_8_ROWS:
      return result_shape.empty() ? 32 : (result_shape[0] + kWarpRows - 1) / kWarpRows * 32;
    default:
      return 1;
  }
}

}  // namespace fusion
