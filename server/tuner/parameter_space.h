// The configurations of a section: what its parameters may be, together.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "fusion/v1/tuner.pb.h"
#include "server/tuner/expression.h"

namespace fusion {

// A value for each parameter in the order of declaration; of an enumeration the index.
using TuningPoint = std::vector<double>;

// Immutable, thread safe.
class ParameterSpace {
 public:
  // InvalidArgument: bounds reversed, step zero, names that are no identifiers or there twice, expressions
  // that do not parse, a constraint that no configuration was found to satisfy ...; everything that is wrong,
  // a line each.
  static absl::StatusOr<std::shared_ptr<const ParameterSpace>> Create(
      const v1::SectionDeclaration& declaration);

  // As declared, and with the defaults of all parameters.
  const v1::SectionDeclaration& declaration() const { return declaration_; }
  size_t dimensions() const { return axes_.size(); }
  // Of a space of no parameters: 1. Grid points, with those that constraints leave out; kUncountable: too
  // many, or real.
  static constexpr uint64_t kUncountable = uint64_t{1} << 62;
  uint64_t grid_points() const { return grid_points_; }
  // The grid point of an index < grid_points(), not canonical.
  TuningPoint GridPoint(uint64_t index) const;

  // What a program uses while nothing is known: satisfies the constraints.
  const TuningPoint& defaults() const { return defaults_; }

  // The nearest values that the parameters may have; those without a meaning at their defaults. NaN becomes
  // the default.
  TuningPoint Canonical(absl::Span<const double> values) const;
  // Of a canonical point: all constraints hold.
  bool Satisfies(const TuningPoint& point) const;
  // InvalidArgument: not canonical, or a constraint does not hold.
  absl::Status Check(absl::Span<const double> values) const;
  // Whether parameter `axis` has a meaning at the point.
  bool Active(const TuningPoint& point, size_t axis) const;

  // One axis.
  enum class Kind { kInteger, kPowerOfTwo, kEnumeration, kReal };
  struct Axis {
    std::string name;
    Kind kind = Kind::kInteger;
    double lower = 0, upper = 0, step = 1;  // as declared; of an enumeration 0 and count - 1
    bool logarithmic = false;
    uint64_t count = 0;    // of values; 0: real
    Expression condition;  // empty: always
  };
  const Axis& axis(size_t index) const { return axes_[index]; }
  // In [0, 1]: where the value is among those of the axis. Equal steps of an integer, equal ratios of a power
  // of two.
  double ToUnit(size_t axis, double value) const;
  // The nearest value.
  double FromUnit(size_t axis, double unit) const;
  // The canonical point nearest to these coordinates; it may break constraints.
  TuningPoint FromUnit(absl::Span<const double> units) const;
  std::vector<double> ToUnit(const TuningPoint& point) const;

  // "tile=32 stages=3 order=row-major", for people.
  std::string Text(const TuningPoint& point) const;

 private:
  ParameterSpace() = default;
  void SetDefaults(const TuningPoint& defaults);

  v1::SectionDeclaration declaration_;
  std::vector<Axis> axes_;
  std::vector<double> sizes_;  // of the context, in the order of names
  std::vector<Expression> constraints_;
  TuningPoint defaults_;
  uint64_t grid_points_ = 0;
};

// True when programs that declare the one and the other can share a search: same parameters, constraints and
// objective.
bool SameSpace(const v1::SectionDeclaration& a, const v1::SectionDeclaration& b);

}  // namespace fusion
