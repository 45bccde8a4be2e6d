#include "library/verification/input_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace fusion {
namespace {

// Peaks are from kLowPeak to kHighPeak, all other entries then whole multiples of kBackground up to
// kMostWhole times it.
constexpr double kMostWhole = 3, kBackground = 1.0 / 64, kLowPeak = 8, kHighPeak = 16;
// Bits of randomness in inputs of a type (InputEntry).
int InputBits(v1::DataType type) { return type == v1::F64 ? 51 : 23; }
// A lane reads up to so many entries at once.
constexpr int64_t kEntriesAtOnce = 4;
// Entries of a result for each lane that, over all runs on random data, miss none: (1 - 1 / lanes)^(8 *
// lanes) = 0.0003.
constexpr int64_t kEntriesOfLane = 8;

// The default ranges are these, or those that the server has found the functions to ask for.
bool HasRange(const v1::InputValues& values) { return values.upper() > values.lower(); }

// The next number of the type above `number`, or below it.
double NextAbove(double number, v1::DataType type) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return type == v1::F64 ? std::nextafter(number, kInfinity)
                         : std::nextafter(static_cast<float>(number), static_cast<float>(kInfinity));
}
double NextBelow(double number, v1::DataType type) { return -NextAbove(-number, type); }

// Data without a range of their own: any numbers of the sides of 0 that the domain allows, `size` in
// magnitude.
void ApplyFreely(const DataPattern& pattern, bool both_sides, double size, InputRule* rule) {
  const bool negative = both_sides && pattern.kind == DataPattern::Kind::kNegative;
  rule->kind = v1::InputValues::INTEGERS;
  rule->nonzero = 1;
  rule->lower = both_sides ? -kMostWhole : 1;
  rule->upper = negative ? -1 : kMostWhole;
  rule->unit = size;
  if (rule->peaks == 0) return;
  if (pattern.small && !both_sides) {
    rule->peak_lower = size * kBackground;
    rule->peak_upper = 2 * size * kBackground;
    return;
  }
  rule->unit = size * kBackground;
  const double sign = pattern.small ? -1 : 1;
  rule->peak_lower = sign * size * kLowPeak;
  rule->peak_upper = sign * size * kHighPeak;
}

// Data that stay in the range that was asked for.
void ApplyWithin(const DataPattern& pattern, InputRule* rule) {
  const bool whole = rule->kind == v1::InputValues::INTEGERS;
  const double lower = rule->lower, upper = rule->upper, middle = lower / 2 + upper / 2;
  if (pattern.kind == DataPattern::Kind::kNegative && lower < 0) {
    rule->upper = std::min(upper, whole ? -1.0 : 0.0);
  } else if (pattern.kind == DataPattern::Kind::kWhole && !whole && std::ceil(lower) + 1 < upper) {
    rule->kind = v1::InputValues::INTEGERS;
    rule->lower = std::max(std::ceil(lower), -kMostWhole);
    rule->upper = std::max(std::min(std::ceil(upper) - 1, kMostWhole), rule->lower);
  } else if (rule->peaks != 0) {
    if (pattern.small) {
      rule->lower = whole ? std::ceil(middle) : middle;
      rule->peak_lower = lower;
      rule->peak_upper = whole ? lower : lower + (upper / 16 - lower / 16);
    } else {
      rule->upper = whole ? std::floor(middle) : middle;
      rule->peak_lower = whole ? upper : upper - (upper / 16 - lower / 16);
      rule->peak_upper = upper;
    }
  }
}

}  // namespace

const char* NameOf(DataPattern::Kind kind) {
  switch (kind) {
    case DataPattern::Kind::kAsked:
      return "random data";
    case DataPattern::Kind::kWhole:
      return "whole numbers";
    case DataPattern::Kind::kNegative:
      return "negative numbers";
    case DataPattern::Kind::kLast:
      return "data whose last entries dominate";
    case DataPattern::Kind::kFirst:
      return "data whose first entries dominate";
    case DataPattern::Kind::kClass:
      return "data in which entries at a fixed distance dominate";
  }
  return "";
}

InputRule RuleOf(const v1::Buffer& input, const DataPattern& pattern) {
  const v1::InputValues& values = input.values();
  InputRule rule{};
  rule.bits = InputBits(input.data_type());
  rule.rows = std::max<int64_t>(input.rows(), 1);
  rule.columns = std::max<int64_t>(input.columns() > 0 ? input.columns() : input.count(), 1);
  rule.stride = std::max<int64_t>(input.row_stride() > 0 ? input.row_stride() : rule.columns, 1);
  rule.step = 1;
  rule.unit = 1;
  rule.kind = values.kind();
  rule.lower = values.lower();
  rule.upper = values.upper();
  const bool is_free = rule.kind == v1::InputValues::DEFAULT || rule.kind == v1::InputValues::FILE;
  if (is_free) {
    rule.kind = v1::InputValues::UNIFORM;
    if (!HasRange(values)) {
      rule.lower = input.domain() == v1::REAL ? -0.5 : 0.25;
      rule.upper = input.domain() == v1::REAL ? 1 : 1.25;
    }
  } else if (rule.kind == v1::InputValues::UNIFORM || rule.kind == v1::InputValues::SORTED) {
    // Neither bound is a value.
    rule.lower = NextAbove(rule.lower, input.data_type());
    rule.upper = NextBelow(rule.upper, input.data_type());
  } else if (rule.kind == v1::InputValues::UNIT_ROWS) {
    rule.lower = std::sqrt(2.0 / static_cast<double>(rule.columns));
    rule.upper = std::sqrt(1.0 / static_cast<double>(rule.columns));
  }
  if (is_free && input.by_value() && !HasRange(values)) {
    // Odd multiples of a half: products with whole numbers stay exact, and differ from what lacks the factor.
    rule.kind = v1::InputValues::INTEGERS;
    rule.lower = input.domain() == v1::REAL ? -1.5 : 0.5;
    rule.upper = 1.5;
    return rule;
  }
  const bool has_patterns = rule.kind == v1::InputValues::UNIFORM || rule.kind == v1::InputValues::INTEGERS;
  if (pattern.kind == DataPattern::Kind::kAsked || !has_patterns) return rule;
  if (pattern.kind == DataPattern::Kind::kLast) rule.peaks = 1;
  if (pattern.kind == DataPattern::Kind::kFirst) rule.peaks = 2;
  if (pattern.kind == DataPattern::Kind::kClass) {
    rule.peaks = 3;
    rule.step = pattern.step;
    rule.phase = pattern.phase;
  }
  if (is_free) {
    // Where the server found what the functions ask for, whole numbers are scaled to it.
    ApplyFreely(pattern, rule.lower < 0, HasRange(values) ? rule.upper / kMostWhole : 1, &rule);
  } else {
    ApplyWithin(pattern, &rule);
  }
  return rule;
}

std::vector<DataPattern> PatternsOf(const v1::Session& session) {
  using Kind = DataPattern::Kind;
  std::vector<DataPattern> patterns = {{.kind = Kind::kWhole}, {.kind = Kind::kNegative}};
  for (const Kind kind : {Kind::kLast, Kind::kFirst}) {
    patterns.push_back({.kind = kind});
    if (session.choosing_entries() > 0) patterns.push_back({.kind = kind, .small = true});
  }
  return patterns;
}

std::vector<DataPattern> ClassPatterns(const v1::Session& session, int64_t lanes) {
  std::vector<DataPattern> patterns;
  const int64_t entries = session.choosing_entries();
  if (entries <= 0 || lanes <= 0) return patterns;
  const int64_t classes = kEntriesAtOnce * lanes;
  const int64_t runs = std::min(classes, kEntriesOfLane * classes / entries);
  // Far apart, one after the other, also modulo parts of the classes, so that the first few show lanes of
  // every warp of every smaller group: the golden section.
  int64_t stride = static_cast<int64_t>(static_cast<double>(classes) * 0.6180339887) | 1;
  while (std::gcd(stride, classes) != 1) stride += 2;
  for (int64_t run = 0; run < runs; ++run)
    for (const bool small : {false, true})
      patterns.push_back({.kind = DataPattern::Kind::kClass,
                          .small = small,
                          .step = classes,
                          .phase = run * stride % classes});
  return patterns;
}

InputRule KnownRule() {
  v1::Buffer input;
  input.set_count(1);
  input.set_data_type(v1::F32);
  return RuleOf(input, {});
}

}  // namespace fusion
