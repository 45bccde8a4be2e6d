#include "compiler/partition/dependence.h"

#include "compiler/partition/elements.h"

namespace fusion {

using namespace llvm;

namespace {

// For one shape of one array that is written. With an order: whether the array is private.
Independence OfShape(const LoopAccesses& accesses, unsigned array, const ArrayShape& shape,
                     ExactNumbers& numbers, IterationSpace& space, const isl::set& assumed,
                     const BlockOrder* order) {
  Elements elements(shape, numbers, space);
  // Assumptions that hold only where loops have nothing to do are of no use.
  isl::set usual = isl::manage(isl_set_universe(isl_space_params_alloc(space.context().get(), 0)));
  const std::string name = NameOf(accesses.arrays[array]);
  TouchedElements touched;
  for (const LoopAccess& access : accesses.accesses) {
    if (access.array != array) continue;
    touched.push_back({&access, elements.Of(access)});
    usual = usual.intersect_params(space.Usual(access.nest));
    if (touched.back().second.is_null())
      return {"where it " + std::string(access.written ? "writes " : "reads ") + name +
                  LineOf(*access.instruction) + " is not an affine function of its counters",
              {},
              {},
              {}};
  }
  const isl::set known = space.Known();
  const isl::set holds = assumed.intersect_params(elements.within()).coalesce();
  if (!holds.intersect_params(known).intersect_params(usual).is_empty().is_false())
    return {"rows of " + name + " may overlap", {}, {}, {}};
  if (order != nullptr) {
    PrivateArray found = FindPrivate(touched, known.intersect_params(holds), numbers, space, *order);
    if (found.fills.empty()) return {name + " is not private", {}, {}, {}};
    return {"", holds.intersect_params(found.assumed), {array}, std::move(found.fills)};
  }
  for (const auto& [writer, written] : touched) {
    if (!writer->written) continue;
    for (const auto& [other, elements_of_other] : touched) {
      isl::map both =
          written.apply_range(elements_of_other.reverse()).intersect_params(known).intersect_params(holds);
      const isl::map same = both.equate(isl::dim::in, 0, isl::dim::out, 0);
      const isl::boolean apart = both.subtract(same).is_empty();
      if (apart.is_true()) continue;
      if (apart.is_error())
        return {"it takes too long to find out whether iterations share elements of " + name, {}, {}, {}};
      return {"iterations may share elements of " + name + ": one writes" + LineOf(*writer->instruction) +
                  " what another " + (other->written ? "writes" : "reads") + LineOf(*other->instruction),
              {},
              {},
              {}};
    }
  }
  return {"", holds, {}, {}};
}

}  // namespace

Independence FindDependence(const LoopAccesses& accesses, ExactNumbers& numbers, IterationSpace& space,
                            const BlockOrder* order) {
  Independence all;
  all.assumed = isl::manage(isl_set_universe(isl_space_params_alloc(space.context().get(), 0)));
  std::string why_shared;
  bool is_any_left = false;
  for (unsigned array = 0; array < accesses.arrays.size(); ++array) {
    if (!accesses.arrays[array].written) continue;
    const std::vector<ArrayShape> shapes = PossibleShapes(accesses, array, numbers);
    Independence found;
    for (const ArrayShape& shape : shapes) {
      found = OfShape(accesses, array, shape, numbers, space, all.assumed, nullptr);
      if (found.why_not.empty()) break;
    }
    is_any_left |= found.why_not.empty();
    if (!found.why_not.empty()) {
      const std::string why = found.why_not;
      if (why_shared.empty()) why_shared = why;
      for (const ArrayShape& shape : shapes) {
        if (order == nullptr) break;
        found = OfShape(accesses, array, shape, numbers, space, all.assumed, order);
        if (found.why_not.empty()) break;
      }
      if (!found.why_not.empty()) return {why, {}, {}, {}};
    }
    all.assumed = found.assumed;
    all.private_arrays.insert(found.private_arrays.begin(), found.private_arrays.end());
    all.fills.insert(found.fills.begin(), found.fills.end());
  }
  // Where each iteration writes nothing but what the last one writes again, all the others are in vain.
  if (!all.private_arrays.empty() && !is_any_left) return {why_shared, {}, {}, {}};
  all.assumed = isl::manage(isl_set_remove_redundancies(all.assumed.coalesce().release()));
  return all;
}

}  // namespace fusion
