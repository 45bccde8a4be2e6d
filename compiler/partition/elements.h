// Elements of arrays as sets, for one shape of an array.
#pragma once

#include "compiler/partition/shape.h"

namespace fusion {

class Elements {
 public:
  Elements(const ArrayShape& shape, ExactNumbers& numbers, IterationSpace& space);

  // The elements that an access touches: a map of iterations to subscripts; null where they are not affine.
  isl::map Of(const LoopAccess& access);
  // The set of parameters for which all subscripts of the accesses so far, but the first, are within their
  // dimensions.
  const isl::set& within() const { return within_; }

 private:
  // Requires 0 <= subscript and subscript + size <= the dimension's.
  bool Within(const isl::pw_aff& subscript, size_t at, int64_t size, const LoopNest& nest,
              const isl::set& domain);

  const ArrayShape& shape_;
  ExactNumbers& numbers_;
  IterationSpace& space_;
  isl::set within_;
};

}  // namespace fusion
