// Proves that polynomials in symbols and counters of loops are never negative.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "server/polynomial/polynomial.h"

namespace fusion {

// A counter is not below any of `lows` and not above any of `highs`, which have symbols and counters further
// out alone.
struct Counter {
  std::string name;
  std::vector<Polynomial> lows, highs;
};

// Not thread safe.
class Prover {
 public:
  // Each fact is never negative; facts have no counters.
  explicit Prover(std::vector<Polynomial> facts);

  // Returns whether a proof was found that `polynomial` is at least 0 for all values of the symbols that the
  // facts allow, and all of the counters (outermost first) that are within their ranges; so it is where there
  // are none. `conditions` are at least 0 as well, and may have counters. False says nothing.
  bool IsNeverNegative(const Polynomial& polynomial, const std::vector<Counter>& counters,
                       const std::vector<Polynomial>& conditions = {});

  // A proof gives up after so many certificates were looked for, and all proofs after so many together: each
  // is bounded, so the time is.
  static constexpr int kMostSearches = 60, kMostSearchesInAll = 1000;
  static constexpr size_t kMostFacts = 20,
                          kMostFactsOfThree = 8;  // of a certificate, and of products of three
  int searches() const { return searches_; }      // of all proofs so far

 private:
  bool Prove(const Polynomial& polynomial, const std::vector<Counter>& counters, size_t inner);
  std::vector<Polynomial> Relevant(const Polynomial& polynomial, const std::vector<Polynomial>& more) const;
  bool Certify(const Polynomial& polynomial, const std::vector<Polynomial>& more);

  const std::vector<Polynomial> facts_;
  std::vector<Polynomial> conditions_, plain_;  // of this proof, and those of them without counters
  std::map<std::string, bool> known_;           // what facts alone say of polynomials, by their text
  int searches_ = 0, most_searches_ = 0;
};

}  // namespace fusion
