// From the description of a function (fusion::v1::FunctionDefinition) to a checked ElementaryFunction.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "fusion/v1/catalog.pb.h"
#include "library/catalog/elementary_function.h"

namespace fusion {

// A place in a description. overload < 0: a field of the function; field empty: the message itself.
struct DefinitionPlace {
  int overload = -1;
  std::string field;  // name of a field of OverloadDefinition or FunctionDefinition
  int index = -1;     // in a repeated field
};

// "blas1/axpy/function.textproto:12:3", or "" when the description comes from no file.
using DefinitionLocator = std::function<std::string(const DefinitionPlace&)>;

// Checks everything that can be checked without a compiler: names are identifiers, patterns parse, dimensions
// and static parameters are bound by operands, each routine stands in the source, the operands of term and
// finish exist, flops and constraints evaluate. InvalidArgument names the place, the function and what to
// change; the first error only.
absl::StatusOr<ElementaryFunction> CheckDefinition(const v1::FunctionDefinition& definition,
                                                   const DefinitionLocator& locate);

// A constraint of MAP or REDUCE: "i == j" joined by &&, dimensions that must have the same size. Positions in
// `dimensions`.
absl::StatusOr<std::vector<std::pair<int, int>>> ParseEqualDimensions(
    const std::string& constraint, const std::vector<Dimension>& dimensions);

// All routines that an overload names: entrywise, map, term, finish and implementations.
std::vector<std::string> RoutineNames(const Overload& overload);

}  // namespace fusion
