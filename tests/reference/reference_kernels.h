// The formulas behind EvaluateReference, on dense matrices: a scalar is 1 x 1, a vector n x 1.
#pragma once

#include <Eigen/Dense>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace fusion::testing {

using ReferenceMatrix = Eigen::Matrix<long double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

struct ReferenceResult {
  ReferenceMatrix value;
  ReferenceMatrix magnitude;
};

struct ReferenceKernel {
  // The rank of the result: 0 to 2, or that of the operand of highest rank.
  static constexpr int kSameRank = -1;
  int rank = kSameRank;
  int minimum_operands = 1;
  int maximum_operands = 1;
  // Assumes that shapes fit, which EvaluateReference checks through `fits`.
  std::function<ReferenceResult(const std::vector<ReferenceMatrix>&)> compute;
  std::function<bool(const std::vector<ReferenceMatrix>&)> fits;
};

const std::map<std::string, ReferenceKernel>& ReferenceKernels();

}  // namespace fusion::testing
