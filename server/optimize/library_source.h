// A graph of all functions of elements, for benchmarks of the whole library.
#pragma once

#include <memory>
#include <string>

#include "library/catalog/catalog.h"

namespace fusion {

// Returns its source (.fuse): each function in single precision for square matrices and vectors of 2, 3, 4, 5
// and 8, as far as it takes them. The routines of larger or other shapes, and of double precision, are
// measured with a graph that has them.
std::string LibrarySource(const std::shared_ptr<const Catalog>& catalog);

}  // namespace fusion
