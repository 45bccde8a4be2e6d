#include "server/tuner/expression.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fusion {
namespace {

constexpr size_t kMostBytes = 4096;
constexpr int kDeepest = 64;

bool IsNameStart(char c) { return absl::ascii_isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsNamePart(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

}  // namespace

// Recursive descent; each level is one row of the precedences in the header.
class ExpressionParser {
 public:
  using Kind = Expression::Step::Kind;

  ExpressionParser(absl::string_view text, const Expression::Names& names) : text_(text), names_(names) {
    result_.text_ = std::string(text);
  }

  absl::StatusOr<Expression> Parse() {
    if (text_.size() > kMostBytes)
      return absl::InvalidArgumentError(absl::StrCat("an expression has at most ", kMostBytes, " bytes"));
    if (!Level(0)) return Error();
    SkipSpace();
    if (position_ != text_.size()) {
      Expect("an operator or the end");
      return Error();
    }
    std::sort(result_.variables_.begin(), result_.variables_.end());
    result_.variables_.erase(std::unique(result_.variables_.begin(), result_.variables_.end()),
                             result_.variables_.end());
    return std::move(result_);
  }

 private:
  struct Operator {
    absl::string_view text;
    Kind kind;
    int level;
  };
  // Operators that are a beginning of another come after it.
  static constexpr Operator kOperators[] = {
      {"||", Kind::kOr, 0},      {"&&", Kind::kAnd, 1},       {"==", Kind::kEqual, 2},
      {"!=", Kind::kUnequal, 2}, {"<=", Kind::kLessEqual, 2}, {">=", Kind::kGreaterEqual, 2},
      {"<", Kind::kLess, 2},     {">", Kind::kGreater, 2},    {"+", Kind::kAdd, 3},
      {"-", Kind::kSubtract, 3}, {"*", Kind::kMultiply, 4},   {"/", Kind::kDivide, 4},
      {"%", Kind::kRemainder, 4}};
  static constexpr int kComparisons = 2, kLevels = 5;

  void SkipSpace() {
    while (position_ < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[position_])))
      ++position_;
  }
  bool Take(absl::string_view token) {
    SkipSpace();
    if (text_.substr(position_, token.size()) != token) return false;
    position_ += token.size();
    return true;
  }
  bool Expect(absl::string_view what) {
    if (error_.empty()) {
      SkipSpace();
      error_ = absl::StrCat("column ", position_ + 1, " of \"", text_, "\": expected ", what);
    }
    return false;
  }
  absl::Status Error() const { return absl::InvalidArgumentError(error_); }

  void Push(Kind kind, double number = 0, size_t variable = 0) {
    result_.code_.push_back({kind, number, variable});
    switch (kind) {
      case Kind::kNumber:
      case Kind::kVariable:
        result_.depth_ = std::max(result_.depth_, ++height_);
        break;
      case Kind::kNegate:
      case Kind::kNot:
      case Kind::kAbs:
      case Kind::kLog2:
        break;
      default:
        --height_;
    }
  }

  const Operator* TakeOperator(int level) {
    SkipSpace();
    for (const Operator& candidate : kOperators) {
      if (text_.substr(position_, candidate.text.size()) != candidate.text) continue;
      if (candidate.level != level) return nullptr;
      position_ += candidate.text.size();
      return &candidate;
    }
    return nullptr;
  }

  bool Level(int level) {
    if (level == kLevels) return Unary();
    if (!Level(level + 1)) return false;
    while (const Operator* found = TakeOperator(level)) {
      if (!Level(level + 1)) return false;
      Push(found->kind);
      if (level == kComparisons && TakeOperator(level)) return Expect("&& or ||: comparisons do not chain");
    }
    return true;
  }

  bool Unary() {
    if (++nesting_ > kDeepest) return Expect("less nesting");
    bool ok;
    if (Take("-")) {
      ok = Unary();
      Push(Kind::kNegate);
    } else if (SkipSpace(), text_.substr(position_, 1) == "!" && text_.substr(position_, 2) != "!=") {
      ++position_;
      ok = Unary();
      Push(Kind::kNot);
    } else {
      ok = Primary();
    }
    --nesting_;
    return ok;
  }

  bool Primary() {
    SkipSpace();
    if (position_ == text_.size()) return Expect("a number or a name");
    if (Take("(")) return Level(0) && (Take(")") || Expect(")"));
    const char c = text_[position_];
    if (absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '.') return Number();
    if (c == '"' || c == '\'') return Quoted(c);
    if (IsNameStart(c)) return Name();
    return Expect("a number or a name");
  }

  bool Number() {
    size_t end = position_;
    while (end < text_.size() &&
           (absl::ascii_isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '.' ||
            ((text_[end] == '-' || text_[end] == '+') && (text_[end - 1] == 'e' || text_[end - 1] == 'E'))))
      ++end;
    double value = 0;
    if (!absl::SimpleAtod(text_.substr(position_, end - position_), &value) || !std::isfinite(value))
      return Expect("a number");
    position_ = end;
    Push(Kind::kNumber, value);
    return true;
  }

  bool Quoted(char quote) {
    const size_t end = text_.find(quote, position_ + 1);
    if (end == absl::string_view::npos)
      return Expect(absl::StrCat("a closing ", absl::string_view(&quote, 1)));
    const absl::string_view value = text_.substr(position_ + 1, end - position_ - 1);
    if (!Constant(value)) return Expect(absl::StrCat("a value of an enumeration; \"", value, "\" is none"));
    position_ = end + 1;
    return true;
  }

  bool Constant(absl::string_view name) {
    for (const auto& [constant, value] : names_.constants) {
      if (constant != name) continue;
      Push(Kind::kNumber, value);
      return true;
    }
    return false;
  }

  bool Name() {
    size_t end = position_;
    while (end < text_.size() && IsNamePart(text_[end])) ++end;
    const absl::string_view name = text_.substr(position_, end - position_);
    for (const auto& [function, kind, arguments] :
         std::initializer_list<std::tuple<absl::string_view, Kind, int>>{{"min", Kind::kMin, 2},
                                                                         {"max", Kind::kMax, 2},
                                                                         {"abs", Kind::kAbs, 1},
                                                                         {"log2", Kind::kLog2, 1}}) {
      if (name != function || !FollowedByParenthesis(end)) continue;
      position_ = end;
      return Call(kind, arguments);
    }
    for (size_t i = 0; i < names_.variables.size(); ++i) {
      if (names_.variables[i] != name) continue;
      Push(Kind::kVariable, 0, i);
      result_.variables_.push_back(i);
      position_ = end;
      return true;
    }
    if (Constant(name)) {
      position_ = end;
      return true;
    }
    return Expect(
        absl::StrCat("one of ", absl::StrJoin(names_.variables, ", "), "; there is no ", name, " here"));
  }

  bool FollowedByParenthesis(size_t end) const {
    while (end < text_.size() && absl::ascii_isspace(static_cast<unsigned char>(text_[end]))) ++end;
    return end < text_.size() && text_[end] == '(';
  }

  bool Call(Kind kind, int arguments) {
    Take("(");
    for (int i = 0; i < arguments; ++i) {
      if (i > 0 && !Take(",")) return Expect(",");
      if (!Level(0)) return false;
    }
    if (!Take(")")) return Expect(")");
    Push(kind);
    return true;
  }

  absl::string_view text_;
  const Expression::Names& names_;
  Expression result_;
  std::string error_;
  size_t position_ = 0;
  int nesting_ = 0;
  size_t height_ = 0;
};

absl::StatusOr<Expression> Expression::Parse(absl::string_view text, const Names& names) {
  return ExpressionParser(text, names).Parse();
}

double Expression::Value(absl::Span<const double> values) const {
  if (code_.empty()) return 1;
  absl::InlinedVector<double, 16> stack;
  const auto pop = [&] {
    const double top = stack.back();
    stack.pop_back();
    return top;
  };
  for (const Step& step : code_) {
    using Kind = Step::Kind;
    switch (step.kind) {
      case Kind::kNumber:
        stack.push_back(step.number);
        continue;
      case Kind::kVariable:
        stack.push_back(values[step.variable]);
        continue;
      case Kind::kNegate:
        stack.back() = -stack.back();
        continue;
      case Kind::kNot:
        stack.back() = stack.back() == 0;
        continue;
      case Kind::kAbs:
        stack.back() = std::abs(stack.back());
        continue;
      case Kind::kLog2:
        stack.back() = std::log2(stack.back());
        continue;
      default:
        break;
    }
    const double b = pop();
    double& a = stack.back();
    const auto holds = [](double value) { return value != 0 && !std::isnan(value); };
    switch (step.kind) {
      case Kind::kAdd:
        a += b;
        break;
      case Kind::kSubtract:
        a -= b;
        break;
      case Kind::kMultiply:
        a *= b;
        break;
      case Kind::kDivide:
        a = b == 0 ? std::numeric_limits<double>::quiet_NaN() : a / b;
        break;
      case Kind::kRemainder:
        a = std::fmod(a, b);
        break;  // NaN for b = 0
      case Kind::kEqual:
        a = a == b;
        break;
      case Kind::kUnequal:
        a = a != b && !std::isnan(a) && !std::isnan(b);
        break;
      case Kind::kLess:
        a = a < b;
        break;
      case Kind::kLessEqual:
        a = a <= b;
        break;
      case Kind::kGreater:
        a = a > b;
        break;
      case Kind::kGreaterEqual:
        a = a >= b;
        break;
      case Kind::kAnd:
        a = holds(a) && holds(b);
        break;
      case Kind::kOr:
        a = holds(a) || holds(b);
        break;
      case Kind::kMin:
        a = std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::min(a, b);
        break;
      case Kind::kMax:
        a = std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::quiet_NaN() : std::max(a, b);
        break;
      default:
        break;
    }
  }
  return stack.back();
}

bool Expression::Holds(absl::Span<const double> values) const {
  const double value = Value(values);
  return value != 0 && !std::isnan(value);
}

}  // namespace fusion
