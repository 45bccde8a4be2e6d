#include "compiler/partition/dependence.h"

#include <utility>

#include "compiler/partition/elements.h"

namespace fusion {

using namespace llvm;

namespace {

// Gives accesses that never meet, in whatever iterations, different parts of the array.
void FindParts(const TouchedElements& touched, const isl::set& holds) {
  std::vector<isl::set> elements;
  for (unsigned at = 0; at < touched.size(); ++at) {
    elements.push_back(touched[at].second.intersect_params(holds).range());
    touched[at].first->part = at;
    for (unsigned before = 0; before < at; ++before) {
      const unsigned met = touched[before].first->part;
      if (met == at || elements[before].is_disjoint(elements[at]).is_true()) continue;
      for (unsigned other = 0; other < at; ++other)
        if (touched[other].first->part == met) touched[other].first->part = at;
    }
  }
}

// Finds innermost loops of which one iteration writes what another touches.
void FindDependent(const TouchedElements& touched, const isl::set& holds,
                   SmallPtrSet<const Loop*, 4>& dependent) {
  for (const auto& [writer, written] : touched)
    for (const auto& [other, of_other] : touched) {
      const Loop* inner = writer->nest.back();
      if (!writer->written || writer->part != other->part || other->nest.back() != inner ||
          !inner->isInnermost())
        continue;
      isl::map both = written.apply_range(of_other.reverse()).intersect_params(holds);
      const unsigned depth = static_cast<unsigned>(writer->nest.size());
      for (unsigned at = 0; at + 1 < depth; ++at)
        both = both.equate(isl::dim::in, static_cast<int>(at), isl::dim::out, static_cast<int>(at));
      const int last = static_cast<int>(depth) - 1;
      if (!both.subtract(both.equate(isl::dim::in, last, isl::dim::out, last)).is_empty().is_true())
        dependent.insert(inner);
    }
}

Independence No(const std::string& why) {
  Independence none;
  none.why_not = why;
  return none;
}

// For one shape of one array that is written. With an order: whether the array is private.
Independence OfShape(LoopAccesses& accesses, unsigned array, const ArrayShape& shape, ExactNumbers& numbers,
                     IterationSpace& space, const isl::set& assumed, const BlockOrder* order) {
  Elements elements(shape, numbers, space);
  // Assumptions that hold only where loops have nothing to do are of no use.
  isl::set usual = isl::manage(isl_set_universe(isl_space_params_alloc(space.context().get(), 0)));
  const std::string name = NameOf(accesses.arrays[array]);
  TouchedElements touched;
  for (LoopAccess& access : accesses.accesses) {
    if (access.array != array) continue;
    touched.push_back({&access, elements.Of(access)});
    usual = usual.intersect_params(space.Usual(access.nest));
    if (touched.back().second.is_null())
      return No("where it " + std::string(access.written ? "writes " : "reads ") + name +
                LineOf(*access.instruction) + " is not an affine function of its counters");
  }
  const isl::set reached = space.Known(), known = reached.intersect_params(space.Repeats());
  const isl::set holds = assumed.intersect_params(elements.within()).coalesce();
  if (!holds.intersect_params(known).intersect_params(usual).is_empty().is_false())
    return No("rows of " + name + " may overlap");
  Independence found;
  if (order != nullptr) {
    PrivateArray of_iteration = FindPrivate(touched, known.intersect_params(holds), numbers, space, *order);
    if (of_iteration.fills.empty()) return No(name + " is not private");
    found.assumed = holds.intersect_params(of_iteration.assumed);
    found.private_arrays = {array};
    found.fills = std::move(of_iteration.fills);
    return found;
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
        return No("it takes too long to find out whether iterations share elements of " + name);
      return No("iterations may share elements of " + name + ": one writes" + LineOf(*writer->instruction) +
                " what another " + (other->written ? "writes" : "reads") + LineOf(*other->instruction));
    }
  }
  found.assumed = holds;
  FindParts(touched, holds.intersect_params(reached));
  FindDependent(touched, holds.intersect_params(reached), found.dependent);
  return found;
}

}  // namespace

Independence FindDependence(LoopAccesses& accesses, ExactNumbers& numbers, IterationSpace& space,
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
      if (!found.why_not.empty()) return No(why);
    }
    all.assumed = found.assumed;
    all.private_arrays.insert(found.private_arrays.begin(), found.private_arrays.end());
    all.fills.insert(found.fills.begin(), found.fills.end());
    all.dependent.insert(found.dependent.begin(), found.dependent.end());
  }
  // Where each iteration writes nothing but what the last one writes again, all the others are in vain.
  if (!all.private_arrays.empty() && !is_any_left) return No(why_shared);
  all.assumed = isl::manage(isl_set_remove_redundancies(all.assumed.coalesce().release()));
  return all;
}

}  // namespace fusion
