// Points that satisfy the constraints of a space, found by propagation: what the constraints say of each
// parameter's bounds narrows them, and where that is not enough they are halved.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "server/tuner/parameter_space.h"

namespace fusion {

// A box is a range of values for each parameter; a search goes through a given number of boxes, and always
// the same ones. Thread safe; the space outlives it.
class ConstraintSearch {
 public:
  // Looks at constraint `alone` only, if it is given.
  explicit ConstraintSearch(const ParameterSpace& space, std::optional<size_t> alone = std::nullopt)
      : space_(space), alone_(alone) {}

  struct Found {
    std::optional<TuningPoint> point;  // canonical, and satisfies the constraints
    // True: there is no point (`point` is empty), or no nearer one (Nearest). False: the boxes were used up.
    bool proved = false;
  };
  // The point nearest to these unit coordinates.
  Found Nearest(const std::vector<double>& units, int boxes) const { return Look(units, boxes, false); }
  // The first point that is found, near these unit coordinates as a rule.
  Found AnyNear(const std::vector<double>& units, int boxes) const { return Look(units, boxes, true); }
  // Returns all points, if there are at most `most` and the boxes suffice; else none. Only for spaces without
  // reals.
  std::vector<TuningPoint> All(size_t most, int boxes) const;

 private:
  struct Range {
    double lower = 0, upper = 0;
    uint64_t first = 0, last = 0;  // positions of the bounds; of reals 0
  };
  using Box = std::vector<Range>;

  Found Look(const std::vector<double>& units, int boxes, bool any) const;
  Box Whole() const;
  absl::Span<const Expression> constraints() const;
  // Sets bounds, moved inwards to values of the parameter. False: there is no value between them.
  bool Restrict(size_t axis, double lower, double upper, Range* range) const;
  // Narrows a box to where constraints may hold. False: they hold nowhere in it.
  bool Propagate(Box& box) const;
  std::vector<Expression::Bounds> BoundsOf(const Box& box) const;
  // Returns whether the condition of a parameter holds in the box.
  Expression::Truth ConditionIn(const Box& box, size_t axis) const;
  // The point of the box nearest to these values.
  TuningPoint PointIn(const Box& box, const TuningPoint& values) const;
  bool Satisfies(const TuningPoint& point) const;
  // A point of the box with one parameter after the other fixed near `values`, and the box narrowed after
  // each: real parameters for which an equation holds have few values.
  std::optional<TuningPoint> Dive(Box box, const TuningPoint& values) const;
  // The parameter whose range is halved next; none: no range is halved further.
  std::optional<size_t> AxisToHalve(const Box& box) const;
  // Appends both halves to `halves`, the one that is nearer to the value last.
  bool Halve(const Box& box, size_t axis, double near, std::vector<Box>& halves) const;

  const ParameterSpace& space_;
  const std::optional<size_t> alone_;
};

}  // namespace fusion
