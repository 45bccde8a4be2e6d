#include "compiler/partition/elements.h"

#include <string>

namespace fusion {

using namespace llvm;

Elements::Elements(const ArrayShape& shape, ExactNumbers& numbers, IterationSpace& space)
    : shape_(shape), numbers_(numbers), space_(space) {
  within_ = isl::manage(isl_set_universe(isl_space_params_alloc(space.context().get(), 0)));
}

isl::map Elements::Of(const LoopAccess& access) {
  if (access.offset == nullptr) return {};
  const std::vector<const SCEV*> subscripts = Subscripts(access.offset, shape_, numbers_);
  if (subscripts.empty()) return {};
  const isl::set domain = space_.Domain(access.nest);
  isl::map elements;
  for (size_t at = 0; at < subscripts.size(); ++at) {
    const isl::pw_aff subscript = space_.Affine(subscripts[at], access.nest);
    if (subscript.is_null()) return {};
    const bool bytes = at + 1 == subscripts.size();
    if (at > 0 && !Within(subscript, at, bytes ? access.bytes : 1, access.nest, domain)) return {};
    isl::map dimension = isl::manage(isl_map_from_pw_aff(subscript.copy()));
    if (bytes) {
      isl::map wide(space_.context(), "{ [x] -> [y] : x <= y < x + " + std::to_string(access.bytes) + " }");
      dimension = dimension.apply_range(wide);
    }
    elements = elements.is_null() ? dimension : elements.flat_range_product(dimension);
  }
  return elements.intersect_domain(domain);
}

bool Elements::Within(const isl::pw_aff& subscript, size_t at, int64_t size, const LoopNest& nest,
                      const isl::set& domain) {
  const SCEV* dimension = Dimension(shape_, at, numbers_);
  const isl::pw_aff most = dimension == nullptr ? isl::pw_aff() : space_.Affine(dimension, nest);
  if (most.is_null()) return false;
  const isl::set outside = subscript.lt_set(space_.Constant(0, nest))
                               .unite(subscript.add(space_.Constant(size, nest)).gt_set(most));
  within_ = within_.subtract(outside.intersect(domain).params()).coalesce();
  return !within_.is_null();
}

}  // namespace fusion
