// The configurations of a section: the values that its parameters may have together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "fusion/v1/tuner.pb.h"
#include "server/tuner/expression.h"

namespace fusion {

// A value for each parameter in the order of declaration; for an enumeration it is the index.
using TuningPoint = std::vector<double>;

// Returns whether the text may be a name, or a value of an enumeration: 1 to kLongestTuningText bytes of
// UTF-8 without control characters.
inline constexpr size_t kLongestTuningText = 200;
bool IsTuningText(absl::string_view text);

// Immutable, thread safe.
class ParameterSpace {
 public:
  // InvalidArgument: bounds reversed, step zero, names that are no identifiers or there twice, text that is
  // not UTF-8, expressions that do not parse, constraints that no configuration satisfies ...; everything
  // that is wrong, a line each.
  static absl::StatusOr<std::shared_ptr<const ParameterSpace>> Create(
      const v1::SectionDeclaration& declaration);

  // The declaration, with the defaults of all parameters.
  const v1::SectionDeclaration& declaration() const { return declaration_; }
  size_t dimensions() const { return axes_.size(); }
  // Number of points of a grid that holds all configurations: where constraints leave few, these alone; else
  // with those that constraints leave out. kUncountable: there are too many, or a parameter is real.
  static constexpr uint64_t kUncountable = uint64_t{1} << 62;
  uint64_t grid_points() const { return grid_points_; }
  // The grid point of an index < grid_points(), not canonical.
  TuningPoint GridPoint(uint64_t index) const;

  // A program uses these values while nothing is known; they satisfy the constraints.
  const TuningPoint& defaults() const { return defaults_; }

  // The nearest values that the parameters may have; parameters without a meaning are at their defaults. NaN
  // becomes the default.
  TuningPoint Canonical(absl::Span<const double> values) const;
  // Returns whether a canonical point satisfies all constraints, or the one.
  bool Satisfies(const TuningPoint& point) const;
  bool Satisfies(const TuningPoint& point, size_t constraint) const;
  // Returns a point that satisfies the constraints, near these unit coordinates as a rule; none: none was
  // found.
  std::optional<TuningPoint> NearPoint(const std::vector<double>& units) const;
  // True: hardly any random point satisfies the constraints, so that NearPoint is the way to find points that
  // do.
  bool sparse() const { return sparse_; }
  // True: all grid points satisfy the constraints, as they are few.
  bool listed() const { return !few_.empty(); }
  // InvalidArgument: the point is not canonical, or a constraint does not hold.
  absl::Status Check(absl::Span<const double> values) const;
  // Returns whether parameter `axis` has a meaning at the point.
  bool Active(const TuningPoint& point, size_t axis) const;

  enum class Kind { kInteger, kPowerOfTwo, kEnumeration, kReal };
  struct Axis {
    std::string name;
    Kind kind = Kind::kInteger;
    double lower = 0, upper = 0, step = 1;  // as declared; of an enumeration 0 and count - 1
    bool logarithmic = false;
    uint64_t count = 0;    // of values; 0: real
    Expression condition;  // empty: always

    double ToUnit(double value) const;
    double FromUnit(double unit) const;
    // Returns value 0, 1, ... count - 1 of an axis that is not real.
    double Value(uint64_t position) const;
    // The nearest value, and its position where the axis is not real.
    double Nearest(double value) const;
    uint64_t Position(double value) const;
    // A value may differ by so much from the value of the axis that it was meant to be.
    double tolerance(double value) const;
  };
  const Axis& axis(size_t index) const { return axes_[index]; }
  // Variables of expressions are the parameters, then the sizes.
  const std::vector<Expression>& constraints() const { return constraints_; }
  const std::vector<double>& sizes() const { return sizes_; }
  // Returns where the value is among those of the axis, in [0, 1]. There equal steps of an integer are equal,
  // and equal ratios of a power of two.
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
  // Moves the defaults to where the constraints hold.
  absl::Status FindDefaults();
  // Finds out whether constraints leave few points, and which.
  void FindFewPoints();

  v1::SectionDeclaration declaration_;
  std::vector<Axis> axes_;
  std::vector<double> sizes_;  // of the context, in the order of names
  std::vector<Expression> constraints_;
  TuningPoint defaults_;
  uint64_t grid_points_ = 0;
  bool sparse_ = false;
  std::vector<TuningPoint> few_;  // all points, where constraints leave few; else empty
};

// True when programs that declare the one and the other can share a search: same parameters, constraints and
// objective.
bool SameSpace(const v1::SectionDeclaration& a, const v1::SectionDeclaration& b);

}  // namespace fusion
