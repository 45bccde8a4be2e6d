#include "server/loop_kernels/formula.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fusion {

bool Formula::IsKnown() const {
  return polynomial_.exact() && std::all_of(operands_.begin(), operands_.end(),
                                            [](const Formula& operand) { return operand.IsKnown(); });
}

std::string Formula::ToString(const std::vector<std::string>& order) const {
  if (!IsKnown()) return "unknown";
  if (operation_.empty()) return polynomial_.ToString(order);
  std::vector<std::string> texts;
  for (const Formula& operand : operands_) {
    std::string text = operand.ToString(order);
    const bool sum = operand.operation_ == "+" || operand.polynomial_.terms().size() > 1;
    const bool divisor = operation_ == "/" && !texts.empty() && text.find_first_of("*/") != std::string::npos;
    texts.push_back((operation_ == "*" || operation_ == "/") && (sum || divisor)
                        ? absl::StrCat("(", text, ")")
                        : std::move(text));
  }
  if (operation_ == "+") return absl::StrJoin(texts, " + ");
  if (operation_ == "*" || operation_ == "/") return absl::StrJoin(texts, operation_);
  return absl::StrCat(operation_, "(", absl::StrJoin(texts, ", "), ")");
}

Formula operator+(const Formula& a, const Formula& b) {
  if (a.IsNumber(0)) return b;
  if (b.IsNumber(0)) return a;
  if (a.operation_.empty() && b.operation_.empty()) return a.polynomial_ + b.polynomial_;
  return Formula("+", {a, b});
}
Formula operator*(const Formula& a, const Formula& b) {
  if (a.IsNumber(1) || b.IsNumber(0)) return b;
  if (b.IsNumber(1) || a.IsNumber(0)) return a;
  if (a.operation_.empty() && b.operation_.empty()) return a.polynomial_ * b.polynomial_;
  return Formula("*", {a, b});
}
Formula operator/(const Formula& a, const Formula& b) {
  if (b.IsNumber(1) || a.IsNumber(0)) return a;
  return Formula("/", {a, b});
}
Formula Larger(const Formula& a, const Formula& b) {
  if (a.operation_.empty() && b.operation_.empty()) {
    if (HasNoNegativeTerm(a.polynomial_ - b.polynomial_)) return a;
    if (HasNoNegativeTerm(b.polynomial_ - a.polynomial_)) return b;
  }
  return Formula::Extreme("max", a, b);
}
Formula Smaller(const Formula& a, const Formula& b) { return Formula::Extreme("min", a, b); }
Formula Formula::Extreme(const std::string& operation, const Formula& a, const Formula& b) {
  std::vector<Formula> operands = a.operation_ == operation ? a.operands_ : std::vector<Formula>{a};
  const bool known = std::any_of(operands.begin(), operands.end(), [&](const Formula& operand) {
    return operand.ToString({}) == b.ToString({});
  });
  if (!known) operands.push_back(b);
  return operands.size() == 1 ? operands[0] : Formula(operation, std::move(operands));
}
Formula Log2Up(const Formula& a) {
  if (const auto number = a.polynomial_.Constant(); number && a.operation_.empty())
    return Formula(static_cast<int64_t>(Log2Up(static_cast<double>(*number))));
  return Formula("log2_up", {a});
}
double Larger(double a, double b) { return std::max(a, b); }
double Smaller(double a, double b) { return std::min(a, b); }
double Log2Up(double a) { return a > 1 ? std::ceil(std::log2(a)) : 0; }

bool HasNoNegativeTerm(const Polynomial& polynomial) {
  return polynomial.exact() && std::all_of(polynomial.terms().begin(), polynomial.terms().end(),
                                           [](const auto& term) { return term.second > 0; });
}

}  // namespace fusion
