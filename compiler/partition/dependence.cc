#include "compiler/partition/dependence.h"

#include "compiler/partition/elements.h"

namespace fusion {

using namespace llvm;

namespace {

// For one shape of one array that is written.
Independence OfShape(const LoopAccesses& accesses, unsigned array, const ArrayShape& shape,
                     ExactNumbers& numbers, IterationSpace& space, const isl::set& assumed) {
  Elements elements(shape, numbers, space);
  // Assumptions that hold only where loops have nothing to do are of no use.
  isl::set usual = isl::manage(isl_set_universe(isl_space_params_alloc(space.context().get(), 0)));
  const std::string name = NameOf(accesses.arrays[array]);
  std::vector<std::pair<const LoopAccess*, isl::map>> touched;
  for (const LoopAccess& access : accesses.accesses) {
    if (access.array != array) continue;
    touched.push_back({&access, elements.Of(access)});
    usual = usual.intersect_params(space.Usual(access.nest));
    if (touched.back().second.is_null())
      return {"where it " + std::string(access.written ? "writes " : "reads ") + name +
                  LineOf(*access.instruction) + " is not an affine function of its counters",
              {}};
  }
  const isl::set known = space.Known();
  const isl::set holds = assumed.intersect_params(elements.within()).coalesce();
  if (!holds.intersect_params(known).intersect_params(usual).is_empty().is_false())
    return {"rows of " + name + " may overlap", {}};
  for (const auto& [writer, written] : touched) {
    if (!writer->written) continue;
    for (const auto& [other, elements_of_other] : touched) {
      isl::map both =
          written.apply_range(elements_of_other.reverse()).intersect_params(known).intersect_params(holds);
      const isl::map same = both.equate(isl::dim::in, 0, isl::dim::out, 0);
      const isl::boolean apart = both.subtract(same).is_empty();
      if (apart.is_true()) continue;
      if (apart.is_error())
        return {"it takes too long to find out whether iterations share elements of " + name, {}};
      return {"iterations may share elements of " + name + ": one writes" + LineOf(*writer->instruction) +
                  " what another " + (other->written ? "writes" : "reads") + LineOf(*other->instruction),
              {}};
    }
  }
  return {"", holds};
}

}  // namespace

Independence FindDependence(const LoopAccesses& accesses, ExactNumbers& numbers, IterationSpace& space) {
  isl::set assumed = isl::manage(isl_set_universe(isl_space_params_alloc(space.context().get(), 0)));
  for (unsigned array = 0; array < accesses.arrays.size(); ++array) {
    if (!accesses.arrays[array].written) continue;
    Independence found;
    for (const ArrayShape& shape : PossibleShapes(accesses, array, numbers)) {
      found = OfShape(accesses, array, shape, numbers, space, assumed);
      if (found.why_not.empty()) break;
    }
    if (!found.why_not.empty()) return found;
    assumed = found.assumed;
  }
  return {"", isl::manage(isl_set_remove_redundancies(assumed.coalesce().release()))};
}

}  // namespace fusion
