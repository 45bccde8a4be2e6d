// Overload resolution: which signature of a function a call means, and how its dimensions are bound to sizes.
// README.md of this folder states the rules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "library/catalog/elementary_function.h"
#include "library/catalog/type.h"

namespace fusion {

// One dimension of the index space of a call.
struct ResolvedDimension {
  Extent extent;
  v1::DimensionKind kind = v1::PARALLEL;
  friend bool operator==(const ResolvedDimension&, const ResolvedDimension&) = default;
};

// A call with everything bound.
struct ResolvedCall {
  const Overload* overload = nullptr;  // lives as long as the function
  Type result;
  // MAP, REDUCE: those of the overload. ENTRYWISE: those of the result. ELEMENT, and ENTRYWISE on elements:
  // {elements}.
  std::vector<ResolvedDimension> dimensions;
  // For each operand the dimension that each of its extents follows; {} for scalars and literals.
  std::vector<std::vector<int>> operand_maps;
  std::vector<int> result_map;
  StaticParameters static_parameters;  // ELEMENT
};

// Resolves a call of `function`. An operand is nullopt when it is a literal: a scalar of any data type.
// `suffix` is that of an alias ("33" of mmul33, "3,3" of mmul<3,3>; FunctionName::suffix in catalog.h) or
// empty. `given`: what the caller wrote for each operand, "" for literals, or nothing. Thread safe.
// InvalidArgument says for the overload that comes nearest what does not fit, by the names of the signature:
// "gemv(a, A, x): x must be vector[n] because A is matrix[m,n], but it is vector[m]; here x is p".
absl::StatusOr<ResolvedCall> ResolveCall(const ElementaryFunction& function,
                                         absl::Span<const std::optional<Type>> operands,
                                         const std::string& suffix, absl::Span<const std::string> given = {});

}  // namespace fusion
