#include "server/polynomial/certificate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "server/linear/general_program.h"

namespace fusion {
namespace {

// Columns of the linear program; more products of facts are not tried.
constexpr size_t kMostProducts = 600;
constexpr double kNoise = 1e-7;  // of lp_solve's values
constexpr int64_t kLargestDenominator = 10000;
// Coefficients beyond this lose their last digits in a double.
constexpr double kLargestCoefficient = 9007199254740992.0;

struct FactProduct {
  std::vector<int> facts;
  Polynomial value;
};

std::vector<FactProduct> ProductsOf(const std::vector<Polynomial>& facts, int factors) {
  std::vector<FactProduct> products = {{{}, Polynomial(1)}};
  size_t begin = 0;  // of the products with one factor less
  for (int factor = 0; factor < factors; ++factor) {
    const size_t end = products.size();
    for (size_t i = begin; i < end; ++i)
      for (size_t fact = products[i].facts.empty() ? 0 : products[i].facts.back(); fact < facts.size();
           ++fact) {
        if (products.size() >= kMostProducts) return products;
        FactProduct product = {products[i].facts, products[i].value * facts[fact]};
        product.facts.push_back(static_cast<int>(fact));
        if (product.value.exact()) products.push_back(std::move(product));
      }
    begin = end;
  }
  return products;
}

// The fraction with a small denominator that is nearest to `value`, by its continued fraction.
CertificatePart FractionOf(double value) {
  int64_t before[2] = {1, 0}, last[2] = {0, 1};  // numerator and denominator of the last two convergents
  double rest = value;
  for (int i = 0; i < 40; ++i) {
    const double whole = std::floor(rest);
    if (whole > 1e15) break;
    const int64_t digit = static_cast<int64_t>(whole);
    int64_t numerator = 0, denominator = 0;
    if (__builtin_mul_overflow(digit, before[0], &numerator) ||
        __builtin_add_overflow(numerator, last[0], &numerator) ||
        __builtin_mul_overflow(digit, before[1], &denominator) ||
        __builtin_add_overflow(denominator, last[1], &denominator) || denominator > kLargestDenominator)
      break;
    std::copy(before, before + 2, last);
    before[0] = numerator, before[1] = denominator;
    if (rest - whole < 1e-9) break;
    rest = 1 / (rest - whole);
  }
  return {.facts = {}, .numerator = before[0], .denominator = std::max<int64_t>(before[1], 1)};
}

}  // namespace

bool IsCertificate(const Polynomial& polynomial, const std::vector<Polynomial>& facts,
                   const Certificate& certificate) {
  int64_t common = 1;
  for (const CertificatePart& part : certificate) {
    if (part.numerator < 0 || part.denominator <= 0) return false;
    if (__builtin_mul_overflow(common, part.denominator / std::gcd(common, part.denominator), &common))
      return false;
  }
  Polynomial sum;
  for (const CertificatePart& part : certificate) {
    Polynomial product = Polynomial(part.numerator) * Polynomial(common / part.denominator);
    for (int fact : part.facts) {
      if (fact < 0 || fact >= static_cast<int>(facts.size())) return false;
      product = product * facts[fact];
    }
    sum = sum + product;
  }
  return sum == Polynomial(common) * polynomial;
}

std::optional<Certificate> FindCertificate(const Polynomial& polynomial, const std::vector<Polynomial>& facts,
                                           int factors) {
  if (!polynomial.exact()) return std::nullopt;
  const std::vector<FactProduct> products = ProductsOf(facts, factors);
  std::map<Monomial, int> rows;
  for (const FactProduct& product : products)
    for (const auto& [monomial, coefficient] : product.value.terms()) {
      if (std::abs(static_cast<double>(coefficient)) > kLargestCoefficient) return std::nullopt;
      rows.emplace(monomial, 0);
    }
  GeneralProgram program;
  program.objective.assign(products.size(), 0);
  for (auto& [monomial, row] : rows) {
    row = static_cast<int>(program.rows.size());
    program.rows.push_back({});
  }
  for (const auto& [monomial, coefficient] : polynomial.terms()) {
    const auto row = rows.find(monomial);
    if (row == rows.end() || std::abs(static_cast<double>(coefficient)) > kLargestCoefficient)
      return std::nullopt;
    program.rows[row->second].right = static_cast<double>(coefficient);
  }
  for (size_t i = 0; i < products.size(); ++i) {
    // Simple parts come first: products of few factors with small numbers, whose shares are simple too.
    double largest = 1;
    for (const auto& [monomial, coefficient] : products[i].value.terms())
      largest = std::max(largest, std::abs(static_cast<double>(coefficient)));
    program.objective[i] = -largest * (1.0 + static_cast<double>(products[i].facts.size()));
    for (const auto& [monomial, coefficient] : products[i].value.terms())
      program.rows[rows.at(monomial)].terms.emplace_back(static_cast<int>(i),
                                                         static_cast<double>(coefficient));
  }
  const GeneralSolution solution =
      SolveLinearProgram(program, DeadlineAfter(std::chrono::duration<double>(kCertificateSeconds)));
  if (solution.outcome != GeneralOutcome::kOptimal) return std::nullopt;
  Certificate certificate;
  for (size_t i = 0; i < products.size(); ++i) {
    if (solution.values[i] < kNoise) continue;
    CertificatePart part = FractionOf(solution.values[i]);
    part.facts = products[i].facts;
    if (part.numerator != 0) certificate.push_back(std::move(part));
  }
  if (!IsCertificate(polynomial, facts, certificate)) return std::nullopt;
  return certificate;
}

}  // namespace fusion
