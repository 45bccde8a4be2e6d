// Type patterns of operands and results in function descriptions; the forms are listed at OperandDefinition
// in proto/fusion/v1/catalog.proto.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "library/catalog/elementary_function.h"

namespace fusion {

// "matrix[i,j]" with dimensions {i, j} -> {kCollection, {0, 1}}. Errors say what a pattern may look like.
absl::StatusOr<TypePattern> ParseTypePattern(absl::string_view text,
                                             const std::vector<Dimension>& dimensions);

// The inverse of ParseTypePattern.
std::string TypePatternToString(const TypePattern& pattern, const std::vector<Dimension>& dimensions);

// Letters, digits and underscores, not starting with a digit.
bool IsIdentifier(absl::string_view text);

}  // namespace fusion
