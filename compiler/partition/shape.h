// Offsets in bytes as subscripts of an array of several dimensions. A product of a size and a counter is not
// affine, but a subscript is; two elements are the same where all their subscripts are, if each lies within
// its dimension.
#pragma once

#include <vector>

#include "compiler/partition/accesses.h"

namespace fusion {

// Byte strides of the dimensions, outermost first: each subscript counts that many bytes. The last counts
// bytes.
struct ArrayShape {
  std::vector<const llvm::SCEV*> strides;
};

// Returns how many elements the dimension `at` (not the first) has, an exact number; null where the strides
// do not divide.
const llvm::SCEV* Dimension(const ArrayShape& shape, size_t at, ExactNumbers& numbers);

// Shapes that the array may have, the simplest first: bytes in a row, strides of constant or of unknown size.
std::vector<ArrayShape> PossibleShapes(const LoopAccesses& accesses, unsigned array, ExactNumbers& numbers);

// Writes `offset` as the sum of subscript * stride; as many subscripts as strides, exact numbers. Empty: it
// cannot.
std::vector<const llvm::SCEV*> Subscripts(const llvm::SCEV* offset, const ArrayShape& shape,
                                          ExactNumbers& numbers);

}  // namespace fusion
