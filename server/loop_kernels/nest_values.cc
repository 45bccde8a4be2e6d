#include "server/loop_kernels/nest_values.h"

#include <algorithm>

namespace fusion {

NestValues::NestValues(const Nest& nest, const IntegerValues& known) : values_(known) {
  for (const NestLoop& loop : nest.loops)
    if (const auto counter = known.find(loop.counter);
        counter != known.end() && loop.value == Polynomial::Symbol(loop.symbol))
      values_[loop.symbol] = counter->second;
  for (const NestQuotient& quotient : nest.quotients) {
    const auto numerator = Of(quotient.numerator), denominator = Of(quotient.denominator);
    if (numerator && denominator && *denominator != 0) values_[quotient.symbol] = *numerator / *denominator;
  }
}

std::optional<int64_t> NestValues::Of(const Polynomial& polynomial) const {
  return polynomial.exact() ? polynomial.Evaluate(values_) : std::nullopt;
}

std::optional<std::pair<int64_t, int64_t>> NestValues::RangeOf(const NestLoop& loop) const {
  std::optional<int64_t> low, high;
  for (const Polynomial& bound : loop.lows)
    if (const auto value = Of(bound)) low = low ? std::max(*low, *value) : *value;
  for (const Polynomial& bound : loop.highs)
    if (const auto value = Of(bound)) high = high ? std::min(*high, *value) : *value;
  if (low && !high)
    for (const Polynomial& condition : loop.conditions) {  // of a loop with steps, that falls with its symbol
      const auto first = Of(condition.Substitute(loop.symbol, Polynomial(*low)));
      const auto second = Of(condition.Substitute(loop.symbol, Polynomial(*low + 1)));
      if (first && second && *second < *first) high = *low + (*first >= 0 ? *first / (*first - *second) : -1);
    }
  if (!low || !high) return std::nullopt;
  return std::pair(*low, *high);
}

}  // namespace fusion
