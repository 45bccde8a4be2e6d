// Values of a nest's polynomials where its integers are known.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "server/loops/evaluate.h"
#include "server/loops/nest.h"

namespace fusion {

// Quotients of parameters have symbols of their own, whose values follow from theirs.
class NestValues {
 public:
  // `known`: sizes, parameters and counters of the host, by their names in the text. The nest must outlive
  // this.
  NestValues(const Nest& nest, const IntegerValues& known);

  void Set(const std::string& symbol, int64_t value) { values_[symbol] = value; }
  // Returns nothing where a symbol has no value.
  std::optional<int64_t> Of(const Polynomial& polynomial) const;
  // Returns the first and last value of a loop's symbol; nothing where that is not known.
  std::optional<std::pair<int64_t, int64_t>> RangeOf(const NestLoop& loop) const;

 private:
  IntegerValues values_;
};

}  // namespace fusion
