// An entry of the library of elementary functions, checked and ready for use. Built from
// fusion::v1::FunctionDefinition by Catalog (catalog.h); proto/fusion/v1/catalog.proto documents each field.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/catalog.pb.h"
#include "library/catalog/type.h"

namespace fusion {

// A parsed type pattern of an operand or result.
struct TypePattern {
  enum class Kind { kAny, kCollection, kElement };
  Kind kind = Kind::kAny;
  // kCollection: positions in Overload::dimensions, one per extent (empty: scalar).
  std::vector<int> dimensions;
  // kElement: one per dimension of the element: the name of a static parameter, or a constant in digits.
  std::vector<std::string> shape;
};

struct Operand {
  std::string name;
  TypePattern pattern;
  v1::ValueDomain domain = v1::REAL;
};

struct Dimension {
  std::string name;
  v1::DimensionKind kind = v1::PARALLEL;
};

// One way to compute an ELEMENT function (Fousek 2010, section 4.2.2).
struct Implementation {
  v1::Granularity granularity = v1::THREAD;
  v1::ThreadsPerElement threads = v1::ONE;
  std::string routine;
  std::string constraint;                // over the static parameters; empty: none
  std::vector<v1::DataType> data_types;  // empty: any
};

// One signature of a function.
struct Overload {
  v1::Form form = v1::ENTRYWISE;
  std::vector<Dimension> dimensions;
  std::vector<Operand> operands;
  TypePattern result;
  std::string formula;
  std::string routine;
  v1::Monoid monoid = v1::MONOID_UNSPECIFIED;
  std::string term_routine;
  std::vector<int> term_operands;  // positions in operands
  std::string finish_routine;
  std::vector<int> finish_operands;  // positions in operands
  std::string part_routine;
  std::vector<std::string> static_parameters;
  std::vector<Implementation> implementations;
  std::string constraint;
  std::string flops;
  v1::Rounding rounding = v1::MAY_ROUND;
};

// Values of the static parameters of an ELEMENT overload, in the order of Overload::static_parameters.
using StaticParameters = std::vector<int>;

struct ElementaryFunction {
  std::string name;
  std::string domain;
  std::string documentation;
  std::vector<Overload> overloads;
  // C++ of the routines, for namespace-less inclusion after library/device/fusion_device.h.
  std::string source;
  // Changes with the source alone. What was learned of kernels and routines is named by it and by the types
  // that they use, so that a function more, other words or another cost forget nothing. 16 hex digits.
  std::string source_hash;
  bool is_inline = false;  // came with a submission: untrusted
  // The costs of one entry in f32, where they are more than its operations; 0: they are not (fusion.v1.Cost).
  double gpu_instructions = 0, host_operations = 0;
};

// Value of an integer expression over static parameters ("2*r*k*c", + - * / and parentheses), or an error.
absl::StatusOr<int64_t> EvaluateExpression(const std::string& expression,
                                           const std::vector<std::string>& names,
                                           const StaticParameters& values);
// Value of a constraint: comparisons (< <= > >= == !=) of such expressions joined by &&. Empty: true.
absl::StatusOr<bool> EvaluateConstraint(const std::string& constraint, const std::vector<std::string>& names,
                                        const StaticParameters& values);

// Returns whether an implementation of an ELEMENT overload is offered for elements with these static
// parameters.
bool Offered(const Overload& overload, const Implementation& implementation, const StaticParameters& values,
             v1::DataType data_type);

// Threads that share one element for an implementation, given the shape of the result element.
inline constexpr int kResultTile = 4;  // PER_RESULT_TILE: rows and columns; PER_RESULT_QUAD: columns
inline constexpr int kWarpRows = 8;    // WARP_PER_8_ROWS
int ThreadsPerElement(const Implementation& implementation, const std::vector<int>& result_shape);

}  // namespace fusion
