#include "server/polynomial/polynomial.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fusion {
namespace {

int DegreeOf(const Monomial& monomial) {
  int degree = 0;
  for (const auto& [symbol, power] : monomial) degree += power;
  return degree;
}

Monomial ProductOf(const Monomial& a, const Monomial& b) {
  Monomial product;
  auto i = a.begin(), j = b.begin();
  while (i != a.end() || j != b.end()) {
    if (j == b.end() || (i != a.end() && i->first < j->first)) {
      product.push_back(*i++);
    } else if (i == a.end() || j->first < i->first) {
      product.push_back(*j++);
    } else {
      product.emplace_back(i->first, i->second + j->second);
      ++i, ++j;
    }
  }
  return product;
}

std::optional<int64_t> Narrow(Int128 value) {
  if (value > std::numeric_limits<int64_t>::max() || value < std::numeric_limits<int64_t>::min())
    return std::nullopt;
  return static_cast<int64_t>(value);
}

std::string Digits(Int128 value) {  // of a number above 0
  std::string digits;
  for (; value > 0; value /= 10) digits.push_back(static_cast<char>('0' + static_cast<int>(value % 10)));
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace

Polynomial::Polynomial(int64_t constant) { Add({}, constant); }

Polynomial Polynomial::Symbol(const std::string& name) {
  Polynomial symbol;
  symbol.Add({{name, 1}}, 1);
  return symbol;
}

Polynomial Polynomial::Inexact() {
  Polynomial none;
  none.exact_ = false;
  return none;
}

void Polynomial::Add(const Monomial& monomial, Int128 coefficient) {
  if (!exact_ || coefficient == 0) return;
  const auto [at, added] = terms_.try_emplace(monomial, 0);
  const bool overflow = __builtin_add_overflow(at->second, coefficient, &at->second);
  if (!overflow && at->second == 0) terms_.erase(at);
  if (overflow || terms_.size() > kMostTerms) *this = Inexact();
}

std::optional<int64_t> Polynomial::Constant() const {
  if (!exact_) return std::nullopt;
  if (terms_.empty()) return 0;
  if (terms_.size() > 1 || !terms_.begin()->first.empty()) return std::nullopt;
  return Narrow(terms_.begin()->second);
}

bool Polynomial::Has(const std::string& symbol) const {
  for (const auto& [monomial, coefficient] : terms_)
    for (const auto& [name, power] : monomial)
      if (name == symbol) return true;
  return false;
}

std::set<std::string> Polynomial::Symbols() const {
  std::set<std::string> symbols;
  for (const auto& [monomial, coefficient] : terms_)
    for (const auto& [name, power] : monomial) symbols.insert(name);
  return symbols;
}

int Polynomial::Degree() const {
  int degree = 0;
  for (const auto& [monomial, coefficient] : terms_) degree = std::max(degree, DegreeOf(monomial));
  return degree;
}

Polynomial operator+(const Polynomial& a, const Polynomial& b) {
  if (!a.exact_ || !b.exact_) return Polynomial::Inexact();
  Polynomial sum = a;
  for (const auto& [monomial, coefficient] : b.terms_) sum.Add(monomial, coefficient);
  return sum;
}

Polynomial Polynomial::operator-() const { return Polynomial(-1) * *this; }

Polynomial operator-(const Polynomial& a, const Polynomial& b) { return a + -b; }

Polynomial operator*(const Polynomial& a, const Polynomial& b) {
  if (!a.exact_ || !b.exact_) return Polynomial::Inexact();
  Polynomial product;
  for (const auto& [first, of_first] : a.terms_)
    for (const auto& [second, of_second] : b.terms_) {
      Int128 coefficient = 0;
      const Monomial monomial = ProductOf(first, second);
      if (__builtin_mul_overflow(of_first, of_second, &coefficient) ||
          DegreeOf(monomial) > Polynomial::kMostPower)
        return Polynomial::Inexact();
      product.Add(monomial, coefficient);
    }
  return product;
}

std::vector<Polynomial> Polynomial::CoefficientsOf(const std::string& symbol) const {
  if (!exact_) return {*this};
  std::vector<Polynomial> coefficients(1);
  for (const auto& [monomial, coefficient] : terms_) {
    Monomial rest;
    size_t power = 0;
    for (const auto& factor : monomial) {
      if (factor.first == symbol)
        power = factor.second;
      else
        rest.push_back(factor);
    }
    if (coefficients.size() <= power) coefficients.resize(power + 1);
    coefficients[power].Add(rest, coefficient);
  }
  return coefficients;
}

Polynomial Polynomial::Substitute(const std::string& symbol, const Polynomial& value) const {
  const std::vector<Polynomial> coefficients = CoefficientsOf(symbol);
  Polynomial result = coefficients.back();
  for (size_t i = coefficients.size() - 1; i-- > 0;) result = result * value + coefficients[i];
  return result;
}

std::optional<int64_t> Polynomial::Evaluate(const std::map<std::string, int64_t>& values) const {
  if (!exact_) return std::nullopt;
  Int128 sum = 0;
  for (const auto& [monomial, coefficient] : terms_) {
    Int128 product = coefficient;
    for (const auto& [symbol, power] : monomial) {
      const auto value = values.find(symbol);
      if (value == values.end()) return std::nullopt;
      for (int i = 0; i < power; ++i)
        if (__builtin_mul_overflow(product, Int128{value->second}, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return Narrow(sum);
}

std::string Polynomial::ToString(const std::vector<std::string>& order) const {
  if (!exact_) return "(too large)";
  if (terms_.empty()) return "0";
  const auto rank = [&](const std::string& symbol) {
    return std::find(order.begin(), order.end(), symbol) - order.begin();
  };
  struct Term {
    std::vector<std::pair<std::ptrdiff_t, std::string>> key;  // rank and name of each factor
    Int128 coefficient;
  };
  std::vector<Term> terms;
  for (const auto& [monomial, coefficient] : terms_) {
    Term term{{}, coefficient};
    for (const auto& [symbol, power] : monomial)
      for (int i = 0; i < power; ++i) term.key.emplace_back(rank(symbol), symbol);
    std::sort(term.key.begin(), term.key.end());
    terms.push_back(std::move(term));
  }
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) {
    return a.key.size() != b.key.size() ? a.key.size() > b.key.size() : a.key < b.key;
  });
  std::string text;
  for (const Term& term : terms) {
    const bool negative = term.coefficient < 0;
    absl::StrAppend(&text, text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + "));
    const Int128 size = negative ? -term.coefficient : term.coefficient;
    std::vector<std::string> factors;
    if (size != 1 || term.key.empty()) factors.push_back(Digits(size));
    for (size_t i = 0; i < term.key.size(); ++i) {
      size_t power = 1;
      for (; i + 1 < term.key.size() && term.key[i + 1] == term.key[i]; ++i) ++power;
      factors.push_back(power == 1 ? term.key[i].second : absl::StrCat(term.key[i].second, "^", power));
    }
    absl::StrAppend(&text, absl::StrJoin(factors, "*"));
  }
  return text;
}

}  // namespace fusion
