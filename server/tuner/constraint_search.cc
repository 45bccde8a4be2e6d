#include "server/tuner/constraint_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace fusion {
namespace {

using Truth = Expression::Truth;

// Rounds of narrowing in one box: where bounds creep, halving is quicker.
constexpr int kMostRounds = 20;
// A real range that became smaller by less than this share has not changed.
constexpr double kShrunk = 0.01;
// In unit coordinates: a real range below this is not halved any more.
constexpr double kThin = 1e-12;
// Looked at for a nearer point once there is one.
constexpr int kBoxesForNearer = 2000;
// Neighbouring numbers that are tried where a real range has become a few of them.
constexpr int kNeighbours = 16;

}  // namespace

absl::Span<const Expression> ConstraintSearch::constraints() const {
  const absl::Span<const Expression> all = space_.constraints();
  return alone_ ? all.subspan(*alone_, 1) : all;
}

ConstraintSearch::Box ConstraintSearch::Whole() const {
  Box box(space_.dimensions());
  for (size_t i = 0; i < box.size(); ++i) {
    const ParameterSpace::Axis& axis = space_.axis(i);
    box[i] = {axis.lower, axis.upper, 0, axis.count == 0 ? 0 : axis.count - 1};
  }
  return box;
}

bool ConstraintSearch::Restrict(size_t index, double lower, double upper, Range* range) const {
  const ParameterSpace::Axis& axis = space_.axis(index);
  lower = std::max(lower, range->lower);
  upper = std::min(upper, range->upper);
  if (!(lower <= upper)) return false;
  if (axis.count == 0) {
    range->lower = lower;
    range->upper = upper;
    return true;
  }
  // The nearest values, and those beside them where these are outside.
  uint64_t first = axis.Position(lower), last = axis.Position(upper);
  if (axis.Value(first) < lower) ++first;
  if (axis.Value(last) > upper) {
    if (last == 0) return false;
    --last;
  }
  if (first > last) return false;
  *range = {axis.Value(first), axis.Value(last), first, last};
  return true;
}

std::vector<Expression::Bounds> ConstraintSearch::BoundsOf(const Box& box) const {
  std::vector<Expression::Bounds> bounds;
  bounds.reserve(box.size() + space_.sizes().size());
  for (const Range& range : box) bounds.push_back({range.lower, range.upper});
  for (const double size : space_.sizes()) bounds.push_back({size, size});
  return bounds;
}

Truth ConstraintSearch::ConditionIn(const Box& box, size_t axis) const {
  const Expression& condition = space_.axis(axis).condition;
  if (condition.empty()) return Truth::kAlways;
  const std::vector<Expression::Bounds> bounds = BoundsOf(box);
  const bool fixed = std::all_of(condition.variables().begin(), condition.variables().end(),
                                 [&](size_t i) { return bounds[i].lower == bounds[i].upper; });
  if (!fixed) return condition.Within(bounds);
  std::vector<double> values;
  for (const Expression::Bounds& bound : bounds) values.push_back(bound.lower);
  return condition.Holds(values) ? Truth::kAlways : Truth::kNever;
}

bool ConstraintSearch::Propagate(Box& box) const {
  for (int round = 0; round < kMostRounds; ++round) {
    bool changed = false;
    std::vector<bool> free(box.size(), true);
    for (size_t i = 0; i < box.size(); ++i) {
      const Truth active = ConditionIn(box, i);
      free[i] = active == Truth::kAlways;
      if (active != Truth::kNever) continue;
      // Without a meaning it stays at its default.
      const double value = space_.defaults()[i];
      changed = changed || box[i].lower != box[i].upper;
      if (!Restrict(i, value, value, &box[i])) return false;
    }
    for (const Expression& constraint : constraints()) {
      std::vector<Expression::Bounds> bounds = BoundsOf(box);
      if (!constraint.Narrow(absl::MakeSpan(bounds))) return false;
      for (const size_t i : constraint.variables()) {
        if (i >= box.size()) {
          if (bounds[i].empty()) return false;
          continue;
        }
        // Fields that may have no meaning may be at their defaults, too.
        if (!free[i]) continue;
        const Range before = box[i];
        if (!Restrict(i, bounds[i].lower, bounds[i].upper, &box[i])) return false;
        const double width = before.upper - before.lower;
        changed =
            changed || (space_.axis(i).count > 0 ? box[i].last - box[i].first < before.last - before.first
                                                 : width - (box[i].upper - box[i].lower) > kShrunk * width);
      }
    }
    if (!changed) return true;
  }
  return true;
}

bool ConstraintSearch::Satisfies(const TuningPoint& point) const {
  return alone_ ? space_.Satisfies(point, *alone_) : space_.Satisfies(point);
}

TuningPoint ConstraintSearch::PointIn(const Box& box, const TuningPoint& values) const {
  TuningPoint point(box.size());
  for (size_t i = 0; i < box.size(); ++i)
    point[i] = space_.axis(i).Nearest(std::clamp(values[i], box[i].lower, box[i].upper));
  return space_.Canonical(point);
}

std::optional<TuningPoint> ConstraintSearch::Dive(Box box, const TuningPoint& values) const {
  for (size_t i = 0; i < box.size(); ++i) {
    Range& range = box[i];
    if (range.lower == range.upper) continue;
    if (space_.axis(i).count == 0) {
      // A few neighbours: whichever holds.
      double value = range.lower;
      for (int step = 0; step < kNeighbours && value < range.upper; ++step)
        value = std::nextafter(value, range.upper);
      if (value == range.upper) {
        for (value = range.lower;; value = std::nextafter(value, range.upper)) {
          TuningPoint point = PointIn(box, values);
          point[i] = value;
          point = space_.Canonical(point);
          if (Satisfies(point)) return point;
          if (value == range.upper) break;
        }
      }
    }
    const double value = space_.axis(i).Nearest(std::clamp(values[i], range.lower, range.upper));
    if (!Restrict(i, value, value, &range) || !Propagate(box)) return std::nullopt;
  }
  TuningPoint point = PointIn(box, values);
  if (Satisfies(point)) return point;
  return std::nullopt;
}

std::optional<size_t> ConstraintSearch::AxisToHalve(const Box& box) const {
  const auto fixed = [&](size_t i) { return box[i].lower == box[i].upper; };
  // First what decides which parameters have a meaning.
  for (size_t i = 0; i < box.size(); ++i) {
    if (ConditionIn(box, i) != Truth::kSometimes) continue;
    for (const size_t variable : space_.axis(i).condition.variables())
      if (variable < box.size() && !fixed(variable)) return variable;
  }
  const std::vector<Expression::Bounds> bounds = BoundsOf(box);
  std::vector<bool> named(box.size(), false);
  for (const Expression& constraint : constraints())
    if (constraint.Within(bounds) != Truth::kAlways)
      for (const size_t variable : constraint.variables())
        if (variable < box.size()) named[variable] = true;
  // The fewest values; real ranges later, the widest first.
  std::optional<size_t> chosen;
  double least = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < box.size(); ++i) {
    if (!named[i] || fixed(i)) continue;
    const ParameterSpace::Axis& axis = space_.axis(i);
    const double width = axis.ToUnit(box[i].upper) - axis.ToUnit(box[i].lower);
    if (axis.count == 0 && width < kThin) continue;
    const double weight = axis.count > 0 ? static_cast<double>(box[i].last - box[i].first) : 1e30 / width;
    if (weight >= least) continue;
    least = weight;
    chosen = i;
  }
  return chosen;
}

bool ConstraintSearch::Halve(const Box& box, size_t index, double near, std::vector<Box>& halves) const {
  const ParameterSpace::Axis& axis = space_.axis(index);
  const Range& range = box[index];
  Range low = range, high = range;
  if (axis.count > 0) {
    low.last = range.first + (range.last - range.first) / 2;
    high.first = low.last + 1;
    low.upper = axis.Value(low.last);
    high.lower = axis.Value(high.first);
  } else {
    const double middle = axis.FromUnit((axis.ToUnit(range.lower) + axis.ToUnit(range.upper)) / 2);
    if (!(middle > range.lower && middle < range.upper)) return false;
    low.upper = high.lower = middle;
  }
  const bool low_first = near - low.upper <= high.lower - near;
  for (const Range& half : {low_first ? high : low, low_first ? low : high}) {
    halves.push_back(box);
    halves.back()[index] = half;
  }
  return true;
}

ConstraintSearch::Found ConstraintSearch::Look(const std::vector<double>& units, int boxes, bool any) const {
  TuningPoint wanted(space_.dimensions());
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = space_.FromUnit(i, units[i]);
  const auto distance_to = [&](const TuningPoint& point) {
    double sum = 0;
    for (size_t i = 0; i < point.size(); ++i) {
      const double by = space_.ToUnit(i, point[i]) - units[i];
      sum += by * by;
    }
    return sum;
  };
  Found found;
  double nearest = std::numeric_limits<double>::infinity();
  const auto take = [&](TuningPoint point) {
    const double distance = distance_to(point);
    if (distance >= nearest) return;
    if (!found.point) boxes = std::min(boxes, kBoxesForNearer);
    nearest = distance;
    found.point = std::move(point);
  };
  bool real = false;
  for (size_t i = 0; i < wanted.size(); ++i) real = real || space_.axis(i).count == 0;
  std::vector<Box> waiting = {Whole()};
  found.proved = true;
  while (!waiting.empty()) {
    if (boxes-- <= 0) {
      found.proved = false;
      break;
    }
    Box box = std::move(waiting.back());
    waiting.pop_back();
    if (!Propagate(box)) continue;
    TuningPoint corner(box.size());
    for (size_t i = 0; i < box.size(); ++i) corner[i] = std::clamp(wanted[i], box[i].lower, box[i].upper);
    if (distance_to(corner) >= nearest) continue;
    const TuningPoint point = PointIn(box, wanted);
    const bool here = Satisfies(point);
    if (here) take(point);
    // Nothing of the box is nearer.
    if (here && distance_to(corner) >= nearest) {
      if (any) break;
      continue;
    }
    if (!here && !found.point) {
      TuningPoint middle(box.size());
      for (size_t i = 0; i < box.size(); ++i) middle[i] = box[i].lower / 2 + box[i].upper / 2;
      middle = PointIn(box, middle);
      if (Satisfies(middle)) {
        take(std::move(middle));
      } else if (real) {
        if (std::optional<TuningPoint> dived = Dive(box, wanted)) take(*std::move(dived));
      }
    }
    if (any && found.point) break;
    const std::optional<size_t> axis = AxisToHalve(box);
    if (!axis) {
      // All values are fixed, or constraints hold all over the box: the point was the answer. What is left of
      // reals is too thin to be looked at.
      if (!here && std::any_of(box.begin(), box.end(), [](const Range& r) { return r.lower != r.upper; }))
        found.proved = false;
      continue;
    }
    if (!Halve(box, *axis, wanted[*axis], waiting)) found.proved = false;
  }
  if (any && found.point) found.proved = false;
  return found;
}

std::vector<TuningPoint> ConstraintSearch::All(size_t most, int boxes) const {
  std::vector<TuningPoint> points;
  std::vector<Box> waiting = {Whole()};
  while (!waiting.empty()) {
    if (boxes-- <= 0) return {};
    Box box = std::move(waiting.back());
    waiting.pop_back();
    if (!Propagate(box)) continue;
    std::optional<size_t> axis = AxisToHalve(box);
    for (size_t i = 0; i < box.size() && !axis; ++i)
      if (box[i].lower != box[i].upper) axis = i;
    if (axis) {
      Halve(box, *axis, box[*axis].lower, waiting);
      continue;
    }
    TuningPoint point(box.size());
    for (size_t i = 0; i < box.size(); ++i) point[i] = box[i].lower;
    if (!Satisfies(point)) continue;
    if (points.size() == most) return {};
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace fusion
