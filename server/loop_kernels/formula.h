// Formulas in sizes, parameters and figures of machines.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/polynomial/polynomial.h"

namespace fusion {

// A formula: a polynomial, or what operators make of formulas. Immutable but for assignment.
class Formula {
 public:
  Formula(Polynomial polynomial) : polynomial_(std::move(polynomial)) {}  // NOLINT: polynomials are formulas
  Formula(int64_t constant) : polynomial_(constant) {}                    // NOLINT: and so are numbers

  // Returns text such as "(2*s*B)/C + 1", or "unknown"; names are in this order in products.
  std::string ToString(const std::vector<std::string>& order) const;

  friend Formula operator+(const Formula& a, const Formula& b);
  friend Formula operator*(const Formula& a, const Formula& b);
  friend Formula operator/(const Formula& a, const Formula& b);
  friend Formula Larger(const Formula& a, const Formula& b);
  friend Formula Smaller(const Formula& a, const Formula& b);
  friend Formula Log2Up(const Formula& a);  // the logarithm to the base 2, rounded up

 private:
  Formula(std::string operation, std::vector<Formula> operands)
      : operation_(std::move(operation)), operands_(std::move(operands)) {}
  static Formula Extreme(const std::string& operation, const Formula& a, const Formula& b);
  bool IsKnown() const;
  bool IsNumber(int64_t number) const { return operation_.empty() && polynomial_ == Polynomial(number); }

  Polynomial polynomial_;  // where there is no operation
  std::string operation_;  // "+", "*", "/", or the name of a function
  std::vector<Formula> operands_;
};
double Larger(double a, double b);
double Smaller(double a, double b);
double Log2Up(double a);

// Returns whether no term is negative, so that the value is not, either: sizes and parameters are not.
bool HasNoNegativeTerm(const Polynomial& polynomial);

}  // namespace fusion
