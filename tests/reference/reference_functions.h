// Computes what each elementary function of the library must compute: an independent second engine for tests,
// written with Eigen in long double. It shares nothing with library/functions but the names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace fusion::testing {

// An operand or result. Entries are row major; of a mapped list, element after element.
struct ReferenceValue {
  bool mapped = false;
  std::vector<int64_t> shape;  // extents of the collection, or shape of one element; {} is a scalar
  int64_t elements = 1;        // length of a mapped list
  std::vector<double> entries;

  // Results only, one per entry: the sum of the absolute values of the terms that make it up (a bound on
  // rounding errors is a small multiple of the length of the reduction times the machine precision times
  // this).
  std::vector<double> magnitude;
};

// Applies function `name` ("gemv") to whole operands. Scalars are broadcast, also to every element of mapped
// lists. NotFound: no such function. InvalidArgument: shapes that do not fit. Thread safe.
absl::StatusOr<ReferenceValue> EvaluateReference(const std::string& name,
                                                 const std::vector<ReferenceValue>& operands);

// Names of all functions that EvaluateReference knows, sorted.
std::vector<std::string> ReferenceFunctionNames();

// Agrees returns whether a computed entry is as good as precision permits. NaN must be NaN; a value beyond
// `largest` must be an infinity of its sign (or a number within the tolerance); else |actual - expected| <=
// epsilon * factor * magnitude, and always within a few times `smallest`, the smallest denormal number.
struct Precision {
  double epsilon;
  double largest;
  double smallest;
};
extern const Precision kF32Precision;
extern const Precision kF64Precision;
bool Agrees(double actual, double expected, double magnitude, double factor, const Precision& precision);

}  // namespace fusion::testing
