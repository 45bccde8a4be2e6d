// An expression's values where its variables have bounds, and the bounds of the variables where it holds.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "server/tuner/expression.h"

namespace fusion {
namespace {

using Bounds = Expression::Bounds;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr Bounds kAll{-kInfinity, kInfinity};
constexpr Bounds kNone{kInfinity, -kInfinity};
// The rounding of an operator is turned around with this room, relative and absolute.
constexpr double kRoom = 4 * std::numeric_limits<double>::epsilon();
constexpr double kLeast = 4 * std::numeric_limits<double>::denorm_min();
// Integers below this are exact, and so are their quotients' floors.
constexpr double kExact = 9007199254740992.0;  // 2^53

Bounds Intersection(const Bounds& a, const Bounds& b) {
  return {std::max(a.lower, b.lower), std::min(a.upper, b.upper)};
}
Bounds Hull(const Bounds& a, const Bounds& b) {
  if (a.empty()) return b;
  if (b.empty()) return a;
  return {std::min(a.lower, b.lower), std::max(a.upper, b.upper)};
}
bool Contains(const Bounds& bounds, double value) { return bounds.lower <= value && value <= bounds.upper; }
bool IsPoint(const Bounds& bounds) { return bounds.lower == bounds.upper; }
bool IsInteger(double value) { return value == std::floor(value) && std::abs(value) < kExact; }
bool IsInfinite(const Bounds& bounds) { return std::isinf(bounds.lower) || std::isinf(bounds.upper); }
double Magnitude(const Bounds& bounds) { return std::max(std::abs(bounds.lower), std::abs(bounds.upper)); }

Bounds Wider(Bounds bounds, double magnitude) {
  if (bounds.empty()) return bounds;
  const double room = kRoom * magnitude + kLeast;
  if (!std::isfinite(room)) return kAll;
  return {bounds.lower - room, bounds.upper + room};
}
Bounds Wider(const Bounds& bounds) {
  // Infinity has no room beside it.
  const auto room = [](double value) { return std::isfinite(value) ? kRoom * std::abs(value) + kLeast : 0; };
  return {bounds.lower - room(bounds.lower), bounds.upper + room(bounds.upper)};
}

// Rounding keeps the order of numbers, so bounds that are computed as values are hold for all values between.
// What has no value (infinity - infinity) is without bounds.
Bounds Sum(const Bounds& a, const Bounds& b) {
  const double lower = a.lower + b.lower, upper = a.upper + b.upper;
  return {std::isnan(lower) ? -kInfinity : lower, std::isnan(upper) ? kInfinity : upper};
}
Bounds Negative(const Bounds& a) { return {-a.upper, -a.lower}; }

template <typename Operation>
Bounds OfCorners(const Bounds& a, const Bounds& b, Operation operation) {
  Bounds result = kNone;
  for (const double x : {a.lower, a.upper})
    for (const double y : {b.lower, b.upper}) {
      double corner = operation(x, y);
      if (std::isnan(corner)) corner = 0;  // 0 * infinity: what is between has the values beside it
      result = Hull(result, {corner, corner});
    }
  return result;
}
Bounds Product(const Bounds& a, const Bounds& b) {
  return OfCorners(a, b, [](double x, double y) { return x * y; });
}
// For divisors that are not 0.
Bounds Quotient(const Bounds& a, const Bounds& b) {
  if (b.lower == 0 && b.upper == 0) return kNone;
  if (b.lower < 0 && b.upper > 0) return kAll;
  if (IsInfinite(a) && IsInfinite(b)) return kAll;
  if (b.upper <= 0) return Negative(Quotient(a, Negative(b)));
  if (b.lower > 0) return OfCorners(a, b, [](double x, double y) { return x / y; });
  if (a.lower >= 0) return {a.lower / b.upper, a.upper == 0 ? 0 : kInfinity};
  if (a.upper <= 0) return {-kInfinity, a.upper / b.upper};
  return kAll;
}
Bounds Remainder(const Bounds& a, const Bounds& b) {
  if (IsPoint(a) && IsPoint(b)) {
    const double value = std::fmod(a.lower, b.lower);
    return std::isnan(value) ? kNone : Bounds{value, value};
  }
  if (IsPoint(b) && a.lower >= 0 && IsInteger(a.lower) && IsInteger(a.upper) && IsInteger(b.lower) &&
      b.lower > 0 && std::floor(a.lower / b.lower) == std::floor(a.upper / b.lower))
    return {std::fmod(a.lower, b.lower), std::fmod(a.upper, b.lower)};
  const double most = std::min(Magnitude(a), Magnitude(b));
  return {a.lower >= 0 ? 0 : -most, a.upper <= 0 ? 0 : most};
}

}  // namespace

// One look at an expression: the bounds of every step, computed upwards; then what must hold, downwards.
class ExpressionBounds {
 public:
  using Kind = Expression::Step::Kind;

  ExpressionBounds(const Expression& expression, absl::Span<const Bounds> variables)
      : code_(expression.code_) {
    nodes_.reserve(code_.size());
    std::vector<size_t> stack;
    for (const Expression::Step& step : code_) {
      Node node;
      switch (step.kind) {
        case Kind::kNumber:
          node.value = {step.number, step.number};
          break;
        case Kind::kVariable:
          node.value = variables[step.variable];
          break;
        case Kind::kNegate:
        case Kind::kNot:
        case Kind::kAbs:
        case Kind::kLog2:
          node.a = stack.back();
          stack.pop_back();
          EvaluateOne(step.kind, node);
          break;
        default:
          node.b = stack.back();
          stack.pop_back();
          node.a = stack.back();
          stack.pop_back();
          EvaluateTwo(step.kind, node);
      }
      stack.push_back(nodes_.size());
      nodes_.push_back(node);
    }
  }

  Expression::Truth truth() const {
    const Node& root = nodes_.back();
    return !MayHold(root)   ? Expression::Truth::kNever
           : MustHold(root) ? Expression::Truth::kAlways
                            : Expression::Truth::kSometimes;
  }

  bool Narrow(absl::Span<Bounds> variables) {
    variables_ = variables;
    return Hold(nodes_.size() - 1);
  }

 private:
  struct Node {
    Bounds value;      // where it has one
    bool nan = false;  // it may have none
    size_t a = 0, b = 0;
  };

  static bool MayHold(const Node& node) {
    return !node.value.empty() && !(node.value.lower == 0 && node.value.upper == 0);
  }
  static bool MustHold(const Node& node) {
    return !node.nan && !node.value.empty() && (node.value.lower > 0 || node.value.upper < 0);
  }
  static Bounds Decision(bool may_be_true, bool may_be_false) {
    return {may_be_true && !may_be_false ? 1.0 : 0.0, may_be_true ? 1.0 : 0.0};
  }
  bool IsDecision(size_t index) const {
    switch (code_[index].kind) {
      case Kind::kNot:
      case Kind::kEqual:
      case Kind::kUnequal:
      case Kind::kLess:
      case Kind::kLessEqual:
      case Kind::kGreater:
      case Kind::kGreaterEqual:
      case Kind::kAnd:
      case Kind::kOr:
        return true;
      default:
        return false;
    }
  }

  void EvaluateOne(Kind kind, Node& node) const {
    const Node& a = nodes_[node.a];
    node.nan = a.nan;
    if (kind == Kind::kNot) {
      node.nan = false;
      const bool may_be_zero = !a.value.empty() && Contains(a.value, 0);
      node.value = Decision(may_be_zero, a.nan || !may_be_zero || !IsPoint(a.value));
      return;
    }
    if (a.value.empty()) {
      node.value = kNone;
    } else if (kind == Kind::kNegate) {
      node.value = Negative(a.value);
    } else if (kind == Kind::kAbs) {
      node.value = Contains(a.value, 0) ? Bounds{0, Magnitude(a.value)}
                                        : Bounds{std::min(std::abs(a.value.lower), std::abs(a.value.upper)),
                                                 Magnitude(a.value)};
    } else {  // log2
      node.nan |= a.value.lower < 0;
      node.value = a.value.upper < 0
                       ? kNone
                       : Bounds{std::log2(std::max(a.value.lower, 0.0)), std::log2(a.value.upper)};
      // The library rounds its results, but need not keep their order.
      if (!IsPoint(a.value) && !node.value.empty()) node.value = Wider(node.value);
    }
  }

  void EvaluateTwo(Kind kind, Node& node) const {
    const Node &left = nodes_[node.a], &right = nodes_[node.b];
    const Bounds &a = left.value, &b = right.value;
    const bool none = a.empty() || b.empty(), nan = left.nan || right.nan;
    const bool same = !none && IsPoint(a) && IsPoint(b) && a.lower == b.lower;
    const bool overlap = !none && !Intersection(a, b).empty();
    switch (kind) {
      case Kind::kAnd:
        node.value = Decision(MayHold(left) && MayHold(right), !MustHold(left) || !MustHold(right));
        return;
      case Kind::kOr:
        node.value = Decision(MayHold(left) || MayHold(right), !MustHold(left) && !MustHold(right));
        return;
      case Kind::kEqual:
        node.value = Decision(overlap, nan || !same);
        return;
      case Kind::kUnequal:
        node.value = Decision(!none && !same, nan || none || overlap);
        return;
      case Kind::kLess:
        node.value = Decision(!none && a.lower < b.upper, nan || none || !(a.upper < b.lower));
        return;
      case Kind::kLessEqual:
        node.value = Decision(!none && a.lower <= b.upper, nan || none || !(a.upper <= b.lower));
        return;
      case Kind::kGreater:
        node.value = Decision(!none && a.upper > b.lower, nan || none || !(a.lower > b.upper));
        return;
      case Kind::kGreaterEqual:
        node.value = Decision(!none && a.upper >= b.lower, nan || none || !(a.lower >= b.upper));
        return;
      default:
        break;
    }
    node.nan = nan;
    if (none) {
      node.value = kNone;
      return;
    }
    switch (kind) {
      case Kind::kAdd:
        node.value = Sum(a, b);
        node.nan |= IsInfinite(a) && IsInfinite(b);
        break;
      case Kind::kSubtract:
        node.value = Sum(a, Negative(b));
        node.nan |= IsInfinite(a) && IsInfinite(b);
        break;
      case Kind::kMultiply:
        node.value = Product(a, b);
        node.nan |= (IsInfinite(a) && Contains(b, 0)) || (IsInfinite(b) && Contains(a, 0));
        break;
      case Kind::kDivide:
        node.value = Quotient(a, b);
        node.nan |= Contains(b, 0) || (IsInfinite(a) && IsInfinite(b));
        break;
      case Kind::kRemainder:
        node.value = Remainder(a, b);
        node.nan |= Contains(b, 0) || IsInfinite(a);
        break;
      case Kind::kMin:
        node.value = {std::min(a.lower, b.lower), std::min(a.upper, b.upper)};
        break;
      default:
        node.value = {std::max(a.lower, b.lower), std::max(a.upper, b.upper)};
    }
  }

  // The step must hold: be neither 0 nor without a value.
  bool Hold(size_t index) {
    if (!MayHold(nodes_[index])) return false;
    return IsDecision(index) ? Require(index, {1, 1}) : true;
  }
  // The step must not hold.
  bool Fail(size_t index) {
    if (MustHold(nodes_[index])) return false;
    return nodes_[index].nan ? true : Require(index, {0, 0});
  }

  // The step must have a value within these bounds. False: it has none.
  bool Require(size_t index, const Bounds& within) {
    Node& node = nodes_[index];
    node.value = Intersection(node.value, within);
    const Bounds z = node.value;
    if (z.empty()) return false;
    const auto both = [&](const Bounds& a, const Bounds& b) {
      return Require(node.a, a) && Require(node.b, b);
    };
    switch (code_[index].kind) {
      case Kind::kNumber:
        return true;
      case Kind::kVariable: {
        Bounds& variable = variables_[code_[index].variable];
        variable = Intersection(variable, z);
        return !variable.empty();
      }
      case Kind::kNegate:
        return Require(node.a, Negative(z));
      case Kind::kAbs: {
        const Bounds& a = nodes_[node.a].value;
        return Require(node.a, Hull(Intersection(a, Negative(z)), Intersection(a, z)));
      }
      case Kind::kLog2:
        return Require(node.a, Wider({std::exp2(z.lower) * (1 - kRoom * (1 + std::abs(z.lower))),
                                      std::exp2(z.upper) * (1 + kRoom * (1 + std::abs(z.upper)))}));
      case Kind::kNot:
        if (z.lower == 1) return Require(node.a, {0, 0});
        return z.upper == 0 && IsDecision(node.a) ? Hold(node.a) : true;
      case Kind::kAnd:
        if (z.lower == 1) return Hold(node.a) && Hold(node.b);
        if (z.upper == 0 && MustHold(nodes_[node.a])) return Fail(node.b);
        return z.upper == 0 && MustHold(nodes_[node.b]) ? Fail(node.a) : true;
      case Kind::kOr:
        if (z.upper == 0) return Fail(node.a) && Fail(node.b);
        if (z.lower == 1 && !MayHold(nodes_[node.a])) return Hold(node.b);
        return z.lower == 1 && !MayHold(nodes_[node.b]) ? Hold(node.a) : true;
      case Kind::kEqual:
      case Kind::kUnequal:
      case Kind::kLess:
      case Kind::kLessEqual:
      case Kind::kGreater:
      case Kind::kGreaterEqual:
        return RequireComparison(index);
      default:
        break;
    }
    const Bounds a = nodes_[node.a].value, b = nodes_[node.b].value;
    switch (code_[index].kind) {
      case Kind::kAdd:
        return both(Wider(Sum(z, Negative(b)), Magnitude(z) + Magnitude(b)),
                    Wider(Sum(z, Negative(a)), Magnitude(z) + Magnitude(a)));
      case Kind::kSubtract:
        return both(Wider(Sum(z, b), Magnitude(z) + Magnitude(b)),
                    Wider(Sum(a, Negative(z)), Magnitude(z) + Magnitude(a)));
      case Kind::kMultiply:
        return both(Factor(z, b), Factor(z, a));
      case Kind::kDivide: {
        const Bounds divisor = Contains(Wider(z), 0) ? kAll : Wider(Quotient(Wider(a), Wider(z)));
        return both(IsInfinite(z) || IsInfinite(b) ? kAll : Wider(Product(Wider(z), b)), divisor);
      }
      case Kind::kRemainder:
        return RequireRemainder(node, z);
      case Kind::kMin:
        return both({z.lower, b.lower > z.upper ? z.upper : kInfinity},
                    {z.lower, a.lower > z.upper ? z.upper : kInfinity});
      default:  // max
        return both({b.upper < z.lower ? z.lower : -kInfinity, z.upper},
                    {a.upper < z.lower ? z.lower : -kInfinity, z.upper});
    }
  }

  // Where x is, when x * known is within z.
  static Bounds Factor(const Bounds& z, const Bounds& known) {
    const Bounds product = Wider(z);
    if (Contains(product, 0) && Contains(known, 0)) return kAll;
    if (IsPoint(known) && known.lower == 0) return kNone;
    return Wider(Quotient(product, known));
  }

  bool RequireComparison(size_t index) {
    Node& node = nodes_[index];
    const bool holds = node.value.lower == 1, fails = node.value.upper == 0;
    const Node &left = nodes_[node.a], &right = nodes_[node.b];
    // A comparison also fails where one of the two has no value.
    if (!holds && (!fails || left.nan || right.nan)) return true;
    const Bounds a = left.value, b = right.value;
    const auto at_most = [&](size_t lesser, const Bounds& x, size_t greater, const Bounds& y) {
      return Require(lesser, {-kInfinity, y.upper}) && Require(greater, {x.lower, kInfinity});
    };
    switch (code_[index].kind) {
      case Kind::kEqual:
        return holds ? Require(node.a, b) && Require(node.b, a) : true;
      case Kind::kUnequal:
        return holds ? true : Require(node.a, b) && Require(node.b, a);
      case Kind::kLess:
      case Kind::kLessEqual:
        return holds ? at_most(node.a, a, node.b, b) : at_most(node.b, b, node.a, a);
      default:
        return holds ? at_most(node.b, b, node.a, a) : at_most(node.a, a, node.b, b);
    }
  }

  bool RequireRemainder(const Node& node, const Bounds& z) {
    Bounds a = nodes_[node.a].value, b = nodes_[node.b].value;
    if (z.lower > 0) a.lower = std::max(a.lower, z.lower);
    if (z.upper < 0) a.upper = std::min(a.upper, z.upper);
    // A remainder is below what it is of.
    const double least = Contains(z, 0) ? 0 : std::min(std::abs(z.lower), std::abs(z.upper));
    if (b.lower >= 0) b.lower = std::max(b.lower, least);
    if (IsPoint(z) && IsInteger(z.lower) && z.lower >= 0) {
      const double r = z.lower;
      if (IsPoint(b) && IsInteger(b.lower) && b.lower > 0 && a.lower >= 0 && a.upper < kExact / 2) {
        // a = k * b + r
        a.lower = std::max(a.lower, std::ceil((a.lower - r) / b.lower) * b.lower + r);
        a.upper = std::min(a.upper, std::floor((a.upper - r) / b.lower) * b.lower + r);
      } else if (IsPoint(a) && IsInteger(a.lower) && a.lower > r && b.lower >= 1 && b.upper < kExact) {
        // b = (a - r) / k
        const double multiple = a.lower - r;
        const double most = std::floor(multiple / b.lower), fewest = std::ceil(multiple / b.upper);
        if (most < 1) return false;
        const Bounds divisor = Wider({multiple / most, multiple / std::max(fewest, 1.0)});
        b = Intersection(b, divisor);
      }
    }
    return Require(node.a, a) && Require(node.b, b);
  }

  const std::vector<Expression::Step>& code_;
  std::vector<Node> nodes_;
  absl::Span<Bounds> variables_;
};

Expression::Truth Expression::Within(absl::Span<const Bounds> variables) const {
  return code_.empty() ? Truth::kAlways : ExpressionBounds(*this, variables).truth();
}

bool Expression::Narrow(absl::Span<Bounds> variables) const {
  return code_.empty() || ExpressionBounds(*this, variables).Narrow(variables);
}

}  // namespace fusion
