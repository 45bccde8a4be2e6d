// Operand types with which the functions of the library are tested: sizes 0, 1, 2, odd and large, in every
// combination that an overload permits.
#pragma once

#include <cstdint>
#include <vector>

#include "library/catalog/elementary_function.h"
#include "library/catalog/type.h"
#include "tests/reference/reference_functions.h"

namespace fusion::testing {

struct OperandShapes {
  std::vector<Type> types;
  int64_t elements = 1;  // length of mapped lists
};

// For ELEMENT, `instances` are the static parameters to use; other forms ignore it.
std::vector<OperandShapes> ShapesOf(const Overload& overload, DataType data_type,
                                    const std::vector<StaticParameters>& instances);

// `entries` as an operand of the reference.
template <class T>
ReferenceValue ToReference(const Type& type, int64_t elements, const std::vector<T>& entries) {
  ReferenceValue value{.mapped = type.mapped, .elements = type.mapped ? elements : 1};
  if (type.mapped) {
    value.shape.assign(type.element_shape.begin(), type.element_shape.end());
  } else {
    for (const Extent& extent : type.extents) value.shape.push_back(extent.constant);
  }
  value.entries.assign(entries.begin(), entries.end());
  return value;
}

}  // namespace fusion::testing
