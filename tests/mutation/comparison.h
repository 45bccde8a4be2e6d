// Finds out whether a mutant ever computes anything else than the original: both run on many data, and what
// they leave is compared.
#pragma once

#include <map>
#include <string>

#include "fusion/v1/device.pb.h"
#include "fusion/v1/program.pb.h"

namespace fusion::testing {

struct Difference {
  enum class Kind {
    kNone,
    kRounding,  // no more than another order of the same operations explains
    kReal,
    kUnknown,  // it could not be compared
  } kind = Kind::kUnknown;
  std::string message;  // the data, the output, the entry and both values
};

// Compares them in a process of its own, whose end says the same as what it tells: a mutant that crashes on
// some data differs. `data_sets`: about so many, of several ranges, signs and patterns, for each of which
// both run once; `seconds`: the time that all of it may take.
Difference CompareOnManyData(const v1::Session& session, const v1::Program& original,
                             const v1::Program& mutant, const std::map<std::string, std::string>& binaries,
                             const v1::DeviceDescription& device, int data_sets, double seconds);

}  // namespace fusion::testing
