// The routines of the library, compiled for the host and callable by name. A new function adds its routines
// to routine_table.cc or, for small elements, to element_routine_table.cc; function_test.cc fails until it
// does.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "library/catalog/elementary_function.h"

namespace fusion::testing {

// A routine on entries (ENTRYWISE, MAP, term, finish): arguments in their order -> result.
template <class T>
using EntryRoutine = std::function<T(const T* arguments)>;

struct EntryRoutinePair {
  int arguments = 0;
  EntryRoutine<float> f32;
  EntryRoutine<double> f64;
};

// Returns the routines by name.
const std::map<std::string, EntryRoutinePair>& EntryRoutines();

// A routine on one element: for each operand the address of its first entry, also when the routine takes it
// by value. `thread` matters to routines of several threads only.
template <class T>
using ElementRoutine = std::function<void(int thread, const std::vector<const T*>& operands, T* result)>;

struct ElementRoutinePair {
  ElementRoutine<float> f32;
  ElementRoutine<double> f64;
};

// Returns each instance that is compiled, by name of the routine, then static parameters.
const std::map<std::string, std::map<StaticParameters, ElementRoutinePair>>& ElementRoutines();

}  // namespace fusion::testing
