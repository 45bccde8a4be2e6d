// Polynomials with integer coefficients.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fusion {

__extension__ typedef __int128 Int128;

// Powers of symbols, sorted by name; every power is at least 1.
using Monomial = std::vector<std::pair<std::string, int>>;

// Immutable but for assignment. Coefficients have 128 bits; a result that would need more, or more than
// kMostTerms terms or a power above kMostPower, is not exact, and so is what is computed from it: it has no
// terms, and nothing can be proved of it.
class Polynomial {
 public:
  static constexpr int kMostTerms = 1024, kMostPower = 16;

  Polynomial() = default;        // 0
  Polynomial(int64_t constant);  // NOLINT: numbers are polynomials
  static Polynomial Symbol(const std::string& name);
  static Polynomial Inexact();

  bool exact() const { return exact_; }
  bool IsZero() const { return exact_ && terms_.empty(); }
  const std::map<Monomial, Int128>& terms() const { return terms_; }
  std::optional<int64_t> Constant() const;  // its value, where it has no symbols and fits
  bool Has(const std::string& symbol) const;
  std::set<std::string> Symbols() const;
  int Degree() const;  // the largest sum of powers in a term

  friend Polynomial operator+(const Polynomial& a, const Polynomial& b);
  friend Polynomial operator-(const Polynomial& a, const Polynomial& b);
  friend Polynomial operator*(const Polynomial& a, const Polynomial& b);
  Polynomial operator-() const;
  // An inexact one is equal to none.
  friend bool operator==(const Polynomial& a, const Polynomial& b) {
    return a.exact_ && b.exact_ && a.terms_ == b.terms_;
  }

  // Returns the coefficients of the symbol's powers 0, 1, 2 ...: at least one of them.
  std::vector<Polynomial> CoefficientsOf(const std::string& symbol) const;
  Polynomial Substitute(const std::string& symbol, const Polynomial& value) const;
  // Returns the value for these values of all its symbols; nothing where one is missing or it does not fit.
  std::optional<int64_t> Evaluate(const std::map<std::string, int64_t>& values) const;

  // Returns text such as "2*s*B + 2", terms of higher degree first. In a term, and among terms of one degree,
  // the symbols of `order` stand first, in its order, the others behind, by name.
  std::string ToString(const std::vector<std::string>& order = {}) const;

 private:
  void Add(const Monomial& monomial, Int128 coefficient);

  std::map<Monomial, Int128> terms_;  // no coefficient is 0
  bool exact_ = true;
};

}  // namespace fusion
