#include "tests/reference/reference_functions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tests/reference/reference_kernels.h"

namespace fusion::testing {
namespace {

int64_t EntriesOf(const std::vector<int64_t>& shape) {
  int64_t entries = 1;
  for (int64_t extent : shape) entries *= extent;
  return entries;
}

// Element number `element` of an operand (the whole operand of a collection).
ReferenceMatrix Extract(const ReferenceValue& operand, int64_t element) {
  int64_t rows = operand.shape.empty() ? 1 : operand.shape[0];
  int64_t columns = operand.shape.size() < 2 ? 1 : operand.shape[1];
  const double* first = operand.entries.data() + (operand.mapped ? element * rows * columns : 0);
  ReferenceMatrix matrix(rows, columns);
  for (int64_t e = 0; e < rows * columns; ++e) matrix.data()[e] = first[e];
  return matrix;
}

std::vector<int64_t> ResultShape(int rank, const ReferenceMatrix& value) {
  if (rank == 0) return {};
  if (rank == 1) return {value.rows()};
  return {value.rows(), value.cols()};
}

}  // namespace

absl::StatusOr<ReferenceValue> EvaluateReference(const std::string& name,
                                                 const std::vector<ReferenceValue>& operands) {
  auto it = ReferenceKernels().find(name);
  if (it == ReferenceKernels().end())
    return absl::NotFoundError(absl::StrCat("no reference for function ", name));
  const ReferenceKernel& kernel = it->second;
  int count = static_cast<int>(operands.size());
  if (count < kernel.minimum_operands || count > kernel.maximum_operands) {
    return absl::InvalidArgumentError(absl::StrCat(name, " does not take ", count, " operands"));
  }
  ReferenceValue result;
  size_t highest_rank = 0;
  for (const ReferenceValue& operand : operands) {
    highest_rank = std::max(highest_rank, operand.shape.size());
    if (static_cast<int64_t>(operand.entries.size()) !=
        EntriesOf(operand.shape) * (operand.mapped ? operand.elements : 1)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": an operand has another number of entries than its shape"));
    }
    if (!operand.mapped) continue;
    if (result.mapped && operand.elements != result.elements) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": mapped lists of different lengths"));
    }
    result.mapped = true;
    result.elements = operand.elements;
  }
  int rank = kernel.rank == ReferenceKernel::kSameRank ? static_cast<int>(highest_rank) : kernel.rank;
  for (int64_t element = 0; element < result.elements; ++element) {
    std::vector<ReferenceMatrix> matrices;
    for (const ReferenceValue& operand : operands) matrices.push_back(Extract(operand, element));
    if (!kernel.fits(matrices)) return absl::InvalidArgumentError(absl::StrCat(name, ": shapes do not fit"));
    ReferenceResult computed = kernel.compute(matrices);
    result.shape = ResultShape(rank, computed.value);
    for (int64_t e = 0; e < computed.value.size(); ++e) {
      result.entries.push_back(static_cast<double>(computed.value.data()[e]));
      result.magnitude.push_back(static_cast<double>(computed.magnitude.data()[e]));
    }
  }
  return result;
}

std::vector<std::string> ReferenceFunctionNames() {
  std::vector<std::string> names;
  for (const auto& [name, kernel] : ReferenceKernels()) names.push_back(name);
  return names;
}

const Precision kF32Precision = {std::numeric_limits<float>::epsilon(), std::numeric_limits<float>::max(),
                                 std::numeric_limits<float>::denorm_min()};
const Precision kF64Precision = {std::numeric_limits<double>::epsilon(), std::numeric_limits<double>::max(),
                                 std::numeric_limits<double>::denorm_min()};

bool Agrees(double actual, double expected, double magnitude, double factor, const Precision& precision) {
  if (std::isnan(expected) || std::isnan(actual)) return std::isnan(expected) && std::isnan(actual);
  if (actual == expected) return true;
  // The largest number itself may round to infinity.
  double beyond = precision.largest * (1 - factor * precision.epsilon);
  if (std::isinf(actual)) return std::abs(expected) >= beyond && (actual > 0) == (expected > 0);
  if (std::isinf(expected)) return std::abs(actual) >= beyond && (actual > 0) == (expected > 0);
  double tolerance =
      precision.epsilon * factor * std::max(magnitude, std::abs(expected)) + 4 * precision.smallest;
  return std::abs(actual - expected) <= tolerance;
}

}  // namespace fusion::testing
