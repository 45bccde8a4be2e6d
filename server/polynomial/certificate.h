// Certificates that a polynomial is never negative.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "server/polynomial/polynomial.h"

namespace fusion {

// A part of a certificate: numerator / denominator, which is above 0, times the product of these facts, by
// number; a fact may stand there twice.
struct CertificatePart {
  std::vector<int> facts;
  int64_t numerator = 0;
  int64_t denominator = 1;
};
// The polynomial is the sum of the parts (Handelman, "Representing polynomials by positive linear functions
// on compact convex polyhedra", 1988). No numerator is negative.
using Certificate = std::vector<CertificatePart>;

// Returns whether the certificate says of `polynomial` what it has to, computed in integers.
bool IsCertificate(const Polynomial& polynomial, const std::vector<Polynomial>& facts,
                   const Certificate& certificate);

// Finds a certificate from facts that are never negative and products of up to `factors` of them, by a linear
// program. Nothing: there is none, or none was found in kCertificateSeconds.
std::optional<Certificate> FindCertificate(const Polynomial& polynomial, const std::vector<Polynomial>& facts,
                                           int factors = 2);
inline constexpr double kCertificateSeconds = 1;

}  // namespace fusion
