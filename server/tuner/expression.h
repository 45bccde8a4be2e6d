// Conditions and constraints of tuning parameters: parsed, never run as code.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace fusion {

// Arithmetic and logic over named numbers:
//   ||   &&   == != < <= > >=   + -   * / %   unary - !   ( )   min(a, b) max(a, b) abs(a) log2(a)   3 2.5
//   1e6
// True is 1, false is 0; what is not 0 holds. && and || evaluate both sides. A division by zero is NaN, and a
// NaN does not hold. Immutable, thread safe.
class Expression {
 public:
  struct Names {
    // Variable i has the value values[i].
    std::vector<std::string> variables;
    // Names of constants: values of enumerations.
    std::vector<std::pair<std::string, double>> constants;
  };
  // Fails with InvalidArgument, which names the column and what was expected. The text has at most 4,096
  // bytes and is nested at most 64 deep.
  static absl::StatusOr<Expression> Parse(absl::string_view text, const Names& names);

  Expression() = default;  // empty: its value is 1
  bool empty() const { return code_.empty(); }
  const std::string& text() const { return text_; }
  double Value(absl::Span<const double> values) const;
  bool Holds(absl::Span<const double> values) const;
  // Indices of the variables that the expression names, ascending.
  const std::vector<size_t>& variables() const { return variables_; }

  // A variable may be between these two numbers, both included.
  struct Bounds {
    double lower = 0, upper = 0;
    bool empty() const { return !(lower <= upper); }
  };
  enum class Truth { kNever, kSometimes, kAlways };
  // Returns whether the expression holds at the points within these bounds, one for each variable. Never and
  // always are certain, in the arithmetic of Value; sometimes means that it is not known.
  Truth Within(absl::Span<const Bounds> variables) const;
  // Narrows the bounds to where the expression may hold; no point at which it holds is lost. False: it holds
  // at none. Constraints are turned around, operator by operator ("HC4": Benhamou, Goualard, Granvilliers and
  // Puget, "Revising hull and box consistency", 1999).
  bool Narrow(absl::Span<Bounds> variables) const;

 private:
  friend class ExpressionParser;
  friend class ExpressionBounds;
  // The steps are in reverse Polish order.
  struct Step {
    enum class Kind : uint8_t {
      kNumber,
      kVariable,
      kNegate,
      kNot,
      kAbs,
      kLog2,
      kAdd,
      kSubtract,
      kMultiply,
      kDivide,
      kRemainder,
      kEqual,
      kUnequal,
      kLess,
      kLessEqual,
      kGreater,
      kGreaterEqual,
      kAnd,
      kOr,
      kMin,
      kMax
    };
    Kind kind;
    double number = 0;
    size_t variable = 0;
  };
  std::string text_;
  std::vector<Step> code_;
  std::vector<size_t> variables_;
  size_t depth_ = 0;  // depth of the stack
};

}  // namespace fusion
