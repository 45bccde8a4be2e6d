// Computes a resolved call on the host, routine by routine, as a generated kernel would: the plainest loops
// that the conventions of catalog.proto permit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "library/catalog/resolve.h"

namespace fusion::testing {

// Entries of `operand` in the order of its type; `elements` is the length of mapped lists.
template <class T>
struct HostCall {
  const ResolvedCall* call = nullptr;
  std::vector<Type> types;  // of the operands; sizes are constants, except `elements`
  std::vector<std::vector<T>> operands;
  int64_t elements = 1;
  int implementation = 0;  // ELEMENT: position in Overload::implementations
};

// The entries of the result. NotFound names a routine that the tables do not have.
template <class T>
absl::StatusOr<std::vector<T>> Interpret(const HostCall<T>& call);

}  // namespace fusion::testing
