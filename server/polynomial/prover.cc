#include "server/polynomial/prover.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <set>
#include <utility>

#include "server/polynomial/certificate.h"

namespace fusion {
namespace {

// A polynomial in symbols that have numbers.
struct NumberedTerm {
  Int128 coefficient;
  std::vector<size_t> factors;
};
using NumberedPolynomial = std::vector<NumberedTerm>;

NumberedPolynomial Numbered(const Polynomial& polynomial, const std::vector<std::string>& symbols) {
  NumberedPolynomial terms;
  for (const auto& [monomial, coefficient] : polynomial.terms()) {
    NumberedTerm term{coefficient, {}};
    for (const auto& [symbol, power] : monomial)
      term.factors.insert(term.factors.end(), power,
                          std::lower_bound(symbols.begin(), symbols.end(), symbol) - symbols.begin());
    terms.push_back(std::move(term));
  }
  return terms;
}

// Returns whether it is below 0 there; values that do not fit are not.
bool IsNegative(const NumberedPolynomial& terms, const std::vector<int>& values) {
  Int128 sum = 0;
  for (const NumberedTerm& term : terms) {
    Int128 product = term.coefficient;
    for (size_t factor : term.factors)
      if (__builtin_mul_overflow(product, Int128{values[factor]}, &product)) return false;
    if (__builtin_add_overflow(sum, product, &sum)) return false;
  }
  return sum < 0;
}

// Returns whether trying finds values for which all facts hold and the polynomial is negative: there is no
// certificate then, and trying takes less than a linear program.
bool IsRefuted(const Polynomial& polynomial, const std::vector<Polynomial>& facts) {
  constexpr int kTries = 300;
  static constexpr int kValues[] = {0, 1, 1, 2, 2, 3, 4, 5, 8, 13, 40};
  std::set<std::string> all = polynomial.Symbols();
  for (const Polynomial& fact : facts) all.merge(fact.Symbols());
  const std::vector<std::string> symbols(all.begin(), all.end());
  const NumberedPolynomial asked = Numbered(polynomial, symbols);
  std::vector<NumberedPolynomial> known;
  for (const Polynomial& fact : facts) known.push_back(Numbered(fact, symbols));
  std::mt19937 random(1);  // the same each time
  std::vector<int> values(symbols.size());
  for (int i = 0; i < kTries; ++i) {
    for (int& value : values) value = kValues[random() % std::size(kValues)];
    if (IsNegative(asked, values) &&
        std::none_of(known.begin(), known.end(),
                     [&](const NumberedPolynomial& fact) { return IsNegative(fact, values); }))
      return true;
  }
  return false;
}

}  // namespace

Prover::Prover(std::vector<Polynomial> facts) : facts_(std::move(facts)) {}

bool Prover::IsNeverNegative(const Polynomial& polynomial, const std::vector<Counter>& counters,
                             const std::vector<Polynomial>& conditions) {
  conditions_ = conditions;
  // Conditions without counters are facts in this proof.
  plain_ = conditions;
  std::erase_if(plain_, [&](const Polynomial& condition) {
    return std::any_of(counters.begin(), counters.end(),
                       [&](const Counter& counter) { return condition.Has(counter.name); });
  });
  most_searches_ = searches_ + kMostSearches;
  return Prove(polynomial, counters, counters.size());
}

// Puts the innermost counter at an end of its range: a polynomial of degree 1 in it is smallest at the lower
// end where its coefficient is not negative, and at the upper end where it is not positive.
bool Prover::Prove(const Polynomial& polynomial, const std::vector<Counter>& counters, size_t inner) {
  if (!polynomial.exact()) return false;
  while (inner > 0 && !polynomial.Has(counters[inner - 1].name)) --inner;
  if (inner == 0 && Certify(polynomial, plain_)) return true;
  if (inner == 0) return false;
  const Counter& counter = counters[inner - 1];
  const std::vector<Polynomial> coefficients = polynomial.CoefficientsOf(counter.name);
  if (coefficients.size() == 2) {
    const bool rises = Prove(coefficients[1], counters, inner - 1);
    if (rises || Prove(-coefficients[1], counters, inner - 1)) {
      const std::vector<Polynomial>& ends = rises ? counter.lows : counter.highs;
      if (std::any_of(ends.begin(), ends.end(), [&](const Polynomial& end) {
            return Prove(polynomial.Substitute(counter.name, end), counters, inner - 1);
          }))
        return true;
    }
  }
  // Its ends may help together with those of others.
  std::vector<Polynomial> ranges;
  for (size_t i = 0; i < inner; ++i) {
    const Polynomial value = Polynomial::Symbol(counters[i].name);
    for (const Polynomial& low : counters[i].lows) ranges.push_back(value - low);
    for (const Polynomial& high : counters[i].highs) ranges.push_back(high - value);
  }
  ranges.insert(ranges.end(), conditions_.begin(), conditions_.end());
  return Certify(polynomial, ranges);
}

// The facts, and what else is known, that speak of symbols of the polynomial, or of symbols of those. The
// nearest come first: those with the fewest symbols that it has not. They are few, as products of all are
// tried.
std::vector<Polynomial> Prover::Relevant(const Polynomial& polynomial,
                                         const std::vector<Polynomial>& more) const {
  const std::set<std::string> asked = polynomial.Symbols();
  std::set<std::string> near = asked;
  for (const auto* list : {&facts_, &more})
    for (const Polynomial& fact : *list) {
      const std::set<std::string> symbols = fact.Symbols();
      if (std::any_of(symbols.begin(), symbols.end(),
                      [&](const auto& symbol) { return asked.count(symbol) > 0; }))
        near.insert(symbols.begin(), symbols.end());
    }
  std::vector<std::pair<int, Polynomial>> ranked;
  for (const auto* list : {&more, &facts_})
    for (const Polynomial& fact : *list) {
      const std::set<std::string> symbols = fact.Symbols();
      if (symbols.empty() || std::none_of(symbols.begin(), symbols.end(),
                                          [&](const auto& symbol) { return near.count(symbol) > 0; }))
        continue;
      const auto known =
          std::find_if(ranked.begin(), ranked.end(), [&](const auto& other) { return other.second == fact; });
      if (known != ranked.end()) continue;
      ranked.emplace_back(std::count_if(symbols.begin(), symbols.end(),
                                        [&](const auto& symbol) { return asked.count(symbol) == 0; }),
                          fact);
    }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  if (ranked.size() > kMostFacts) ranked.resize(kMostFacts);
  std::vector<Polynomial> relevant;
  for (auto& [foreign, fact] : ranked) relevant.push_back(std::move(fact));
  return relevant;
}

bool Prover::Certify(const Polynomial& polynomial, const std::vector<Polynomial>& more) {
  if (const auto constant = polynomial.Constant()) return *constant >= 0;
  std::string text;
  if (more.empty()) {
    text = polynomial.ToString();
    if (const auto known = known_.find(text); known != known_.end()) return known->second;
  }
  if (searches_ >= std::min(most_searches_, kMostSearchesInAll)) return false;
  const std::vector<Polynomial> facts = Relevant(polynomial, more);
  if (IsRefuted(polynomial, facts)) {
    if (more.empty()) known_.emplace(std::move(text), false);
    return false;
  }
  ++searches_;
  bool proved = FindCertificate(polynomial, facts, 2).has_value();
  if (!proved && polynomial.Degree() > 2) {
    const size_t few = std::min(facts.size(), kMostFactsOfThree);
    proved = FindCertificate(polynomial, {facts.begin(), facts.begin() + few}, 3).has_value();
  }
  if (more.empty()) known_.emplace(std::move(text), proved);
  return proved;
}

}  // namespace fusion
