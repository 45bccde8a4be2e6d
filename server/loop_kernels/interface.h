// The interface of loops says what they read and write, and what has to be known to run them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/loops/evaluate.h"
#include "server/loops/syntax.h"
#include "server/parse/error_list.h"

namespace fusion {

struct LoopArray {
  CVariable variable;
  bool writes = false;
};

struct LoopInterface {
  std::vector<LoopArray> arrays;      // in the order of their declarations
  std::vector<CVariable> scalars;     // real numbers that are read
  std::vector<std::string> integers;  // without a value in the text, that loops, or extents of arrays, need
  std::vector<CVariable>
      constants;  // integers that the text gives a value: numbers, or what follows from others
};

// Reports arrays of unknown extents, and names that two loops mean different variables by.
LoopInterface InterfaceOf(const CProgram& program, ErrorList* errors);

// Returns how many entries an array has: nothing where an extent has no value, or is below 1.
std::optional<int64_t> EntriesOf(const CVariable& array, const IntegerValues& values);

// Returns declarations of these parameters, and of the interface's constants, which follow from its integers
// and from them.
std::string ConstantsText(const LoopInterface& interface, const IntegerValues& parameters);

// Returns all loops as one function of C and C++, in which each is done one iteration after the other: `void
// NAME(int n, ..., double alpha, ..., float* a, ...)`, with the integers, scalars and arrays of the interface
// in their order. `parameters`: values of names that are not among these. `force_f64`: float becomes double.
std::string PrintSerial(const CProgram& program, const LoopInterface& interface,
                        const IntegerValues& parameters, const std::string& name, bool force_f64);

}  // namespace fusion
