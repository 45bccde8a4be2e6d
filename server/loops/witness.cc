#include "server/loops/witness.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace fusion {
namespace {

using Values = std::map<std::string, int64_t>;

constexpr int kTrials = 40;
constexpr int64_t kMostSteps = 20000;  // of one trial
// Iterations of a loop that are looked at. A dependence over a longer distance is not met.
constexpr int64_t kMostIterations = 130;

bool AllHold(const std::vector<Polynomial>& conditions, const Values& values) {
  return std::all_of(conditions.begin(), conditions.end(), [&](const Polynomial& condition) {
    const auto value = condition.Evaluate(values);
    return value && *value >= 0;
  });
}

// Values of the parameters for one trial, if the facts allow them.
std::optional<Values> ParametersOf(const Nest& nest, int trial) {
  std::set<std::string> symbols(nest.parameters.begin(), nest.parameters.end());
  for (const NestQuotient& quotient : nest.quotients)
    for (const Polynomial* part : {&quotient.numerator, &quotient.denominator})
      for (const std::string& symbol : part->Symbols()) symbols.insert(symbol);
  for (const NestQuotient& quotient : nest.quotients) symbols.erase(quotient.symbol);
  static constexpr int64_t kAlike[] = {3, 4, 2, 5, 8, 1, 200};
  std::mt19937 random(trial);  // the same each time
  Values values;
  for (const std::string& symbol : symbols) {
    const bool alike = trial < static_cast<int>(std::size(kAlike));
    values[symbol] =
        alike ? kAlike[trial] : std::uniform_int_distribution<int64_t>(0, trial < 20 ? 6 : 40)(random);
  }
  // Quotients of quotients stand behind them.
  for (const NestQuotient& quotient : nest.quotients) {
    const auto numerator = quotient.numerator.Evaluate(values),
               denominator = quotient.denominator.Evaluate(values);
    if (!numerator || !denominator || *denominator <= 0 || *numerator < 0) return std::nullopt;
    values[quotient.symbol] = *numerator / *denominator;
  }
  if (!AllHold(nest.facts, values)) return std::nullopt;
  return values;
}

class Runner {
 public:
  explicit Runner(const Nest& nest) : nest_(nest) {}

  // Calls `body` for all iterations of the loops, outermost first, until it returns false.
  bool Run(const std::vector<int>& loops, size_t depth, Values* values,
           const std::function<bool(const Values&)>& body) {
    if (++steps_ > kMostSteps) return false;
    if (depth == loops.size()) return body(*values);
    const NestLoop& loop = nest_.loops[loops[depth]];
    std::optional<int64_t> low, high;
    for (const Polynomial& bound : loop.lows) {
      const auto value = bound.Evaluate(*values);
      if (value) low = std::max(low.value_or(*value), *value);
    }
    for (const Polynomial& bound : loop.highs) {
      const auto value = bound.Evaluate(*values);
      if (value) high = std::min(high.value_or(*value), *value);
    }
    // Iterations that nobody knows to be are no witnesses.
    if (!loop.bounded || !low) return true;
    if (!high) high = *low + kMostIterations;  // the loop's conditions say where it ends
    high = std::min(*high, *low + kMostIterations);
    for (int64_t at = *low; at <= *high; ++at) {
      (*values)[loop.symbol] = at;
      if (!AllHold(loop.conditions, *values)) continue;
      if (!Run(loops, depth + 1, values, body)) return false;
    }
    values->erase(loop.symbol);
    return true;
  }
  void Restart() { steps_ = 0; }

 private:
  const Nest& nest_;
  int64_t steps_ = 0;
};

// The place of an entry in memory, in entries.
std::optional<std::vector<int64_t>> PlaceOf(const std::vector<Polynomial>& extents,
                                            const std::vector<int64_t>& index, const Values& values) {
  int64_t place = 0;
  for (size_t dimension = 0; dimension < index.size(); ++dimension) {
    const auto extent = dimension == 0 ? std::optional<int64_t>(0) : extents[dimension].Evaluate(values);
    if (!extent || __builtin_mul_overflow(place, *extent, &place) ||
        __builtin_add_overflow(place, index[dimension], &place))
      return std::nullopt;
  }
  return std::vector<int64_t>{place};
}

std::optional<std::vector<int64_t>> IndexOf(const NestAccess& access, const Values& values) {
  for (const NestGuard& guard : access.guards)
    if (!guard.whole || !AllHold(guard.conditions, values)) return std::nullopt;
  std::vector<int64_t> index;
  for (const Polynomial& dimension : access.index) {
    const auto value = dimension.Evaluate(values);
    if (!value) return std::nullopt;
    index.push_back(*value);
  }
  return index;
}

std::string ParametersText(const Nest& nest, const Values& values) {
  std::vector<std::string> parts;
  for (const std::string& parameter : nest.parameters)
    if (const auto value = values.find(parameter); value != values.end())
      parts.push_back(absl::StrCat(parameter, " = ", value->second));
  return parts.empty() ? "" : absl::StrCat(absl::StrJoin(parts, ", "), ": ");
}

std::string IterationText(const NestLoop& loop, const Values& values) {
  return absl::StrCat(loop.counter, " = ", loop.value.Evaluate(values).value_or(0));
}

}  // namespace

std::optional<std::string> FindWitness(const Nest& nest, int loop, const NestAccess& first,
                                       const NestAccess& second, bool in_rows) {
  const size_t depth = std::find(first.loops.begin(), first.loops.end(), loop) - first.loops.begin();
  const std::vector<int> outer(first.loops.begin(), first.loops.begin() + depth);
  const std::vector<int> of_first(first.loops.begin() + depth, first.loops.end()),
      of_second(second.loops.begin() + depth, second.loops.end());
  const NestLoop& carrier = nest.loops[loop];
  const auto key = [&](const NestAccess& access, const Values& values) {
    auto index = IndexOf(access, values);
    return !index || in_rows ? index : PlaceOf(nest.arrays[access.array].extents, *index, values);
  };
  Runner runner(nest);
  for (int trial = 0; trial < kTrials; ++trial) {
    std::optional<Values> parameters = ParametersOf(nest, trial);
    if (!parameters) continue;
    std::optional<std::string> witness;
    runner.Restart();
    Values values = *parameters;
    int64_t rounds = 0;
    runner.Run(outer, 0, &values, [&](const Values& around) {
      // The first two iterations that did, by entry.
      std::map<std::vector<int64_t>, std::pair<int64_t, int64_t>> touched;
      Values inside = around;
      runner.Run(of_first, 0, &inside, [&](const Values& now) {
        if (const auto index = key(first, now)) {
          const int64_t at = now.at(carrier.symbol);
          auto& [earliest, next] = touched.try_emplace(*index, at, at).first->second;
          if (next == earliest) next = at;
        }
        return true;
      });
      inside = around;
      runner.Run(of_second, 0, &inside, [&](const Values& now) {
        const auto touches = key(second, now);
        if (!touches) return true;
        const auto found = touched.find(*touches);
        if (found == touched.end()) return true;
        const auto [earliest, next] = found->second;
        const int64_t at = earliest == now.at(carrier.symbol) ? next : earliest;
        if (at == now.at(carrier.symbol)) return true;
        Values other = now;
        other[carrier.symbol] = at;
        std::string entry = nest.arrays[first.array].variable.name;
        const std::vector<int64_t> index = IndexOf(second, now).value();
        for (int64_t number : index) absl::StrAppend(&entry, "[", number, "]");
        const bool later = other.at(carrier.symbol) < now.at(carrier.symbol);
        witness = absl::StrCat(ParametersText(nest, now), IterationText(carrier, later ? other : now),
                               " and ", IterationText(carrier, later ? now : other), " both touch ", entry);
        return false;
      });
      return !witness && ++rounds < 64;
    });
    if (witness) return witness;
  }
  return std::nullopt;
}

bool MayStayInRows(const Nest& nest, const NestAccess& access) {
  const std::vector<Polynomial>& extents = nest.arrays[access.array].extents;
  Runner runner(nest);
  for (int trial = 0; trial < kTrials; ++trial) {
    std::optional<Values> values = ParametersOf(nest, trial);
    if (!values) continue;
    bool any = false, leaves = false;
    runner.Restart();
    runner.Run(access.loops, 0, &*values, [&](const Values& now) {
      const auto index = IndexOf(access, now);
      if (!index) return true;
      any = true;
      for (size_t dimension = 1; dimension < extents.size(); ++dimension) {
        const auto extent = extents[dimension].Evaluate(now);
        leaves |= !extent || (*index)[dimension] < 0 || (*index)[dimension] >= *extent;
      }
      return !leaves;
    });
    if (any && !leaves) return true;
  }
  return false;
}

std::optional<std::string> FindTwoIterations(const Nest& nest, int loop) {
  std::vector<int> loops;
  for (int at = loop; at >= 0; at = nest.loops[at].parent) loops.insert(loops.begin(), at);
  const NestLoop& carrier = nest.loops[loop];
  const std::vector<int> outer(loops.begin(), loops.end() - 1);
  Runner runner(nest);
  for (int trial = 0; trial < kTrials; ++trial) {
    std::optional<Values> values = ParametersOf(nest, trial);
    if (!values) continue;
    std::optional<std::string> found;
    runner.Restart();
    runner.Run(outer, 0, &*values, [&](const Values& around) {
      Values inside = around;
      std::optional<Values> before;
      runner.Run({loop}, 0, &inside, [&](const Values& now) {
        if (before)
          found = absl::StrCat(ParametersText(nest, now), IterationText(carrier, *before), " and ",
                               IterationText(carrier, now));
        before = now;
        return !found;
      });
      return !found;
    });
    if (found) return found;
  }
  return std::nullopt;
}

}  // namespace fusion
