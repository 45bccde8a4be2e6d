#include "server/tuner/strategies/routine.h"

#include <algorithm>
#include <cmath>

namespace fusion {
namespace {

// So many known points are passed before the routine is told to wait: it may go in circles among them.
constexpr int kMostKnown = 1000;
constexpr double kSmallestRealStep = 1e-4;

}  // namespace

std::optional<TuningPoint> RoutineStrategy::Propose(TuningKnowledge& knowledge) {
  if (!routine_.begun()) {
    routine_ = Run(knowledge);
    routine_.Resume(0);
  }
  for (int i = 0; i < kMostKnown && !routine_.done(); ++i) {
    const int64_t arm = knowledge.Find(routine_.wanted());
    if (arm < 0) {
      if (knowledge.IsOutstanding(routine_.wanted())) return std::nullopt;
      return routine_.wanted();
    }
    routine_.Resume(knowledge.arms()[static_cast<size_t>(arm)].cost);
  }
  return std::nullopt;
}

TuningPoint FeasiblePoint(const ParameterSpace& space, const std::vector<double>& units,
                          const TuningPoint& inside) {
  TuningPoint point = space.FromUnit(units);
  if (space.Satisfies(point)) return point;
  if (space.sparse()) return space.NearPoint(units).value_or(inside);
  const std::vector<double> from = space.ToUnit(inside);
  std::vector<double> between(units.size());
  for (double part : {0.75, 0.5, 0.25, 0.125}) {
    for (size_t i = 0; i < units.size(); ++i)
      between[i] = from[i] + part * (std::clamp(units[i], 0.0, 1.0) - from[i]);
    point = space.FromUnit(between);
    if (space.Satisfies(point)) return point;
  }
  return space.NearPoint(units).value_or(inside);
}

double SmallestStep(const ParameterSpace& space, size_t axis) {
  const uint64_t count = space.axis(axis).count;
  return count == 0 ? kSmallestRealStep : count == 1 ? 1 : 1 / static_cast<double>(count - 1);
}

std::vector<TuningPoint> Neighbours(const ParameterSpace& space, const TuningPoint& point, double step) {
  std::vector<TuningPoint> result;
  const auto add = [&](size_t axis, double value) {
    TuningPoint changed = point;
    changed[axis] = value;
    changed = space.Canonical(changed);
    // Where points are sparse, one step breaks constraints: others follow.
    if (space.sparse() && !space.Satisfies(changed))
      changed = space.NearPoint(space.ToUnit(changed)).value_or(point);
    if (changed != point && space.Satisfies(changed)) result.push_back(std::move(changed));
  };
  for (size_t axis = 0; axis < space.dimensions(); ++axis) {
    if (!space.Active(point, axis)) continue;
    if (space.axis(axis).kind == ParameterSpace::Kind::kEnumeration) {
      for (uint64_t value = 0; value < space.axis(axis).count; ++value) add(axis, static_cast<double>(value));
      continue;
    }
    const double unit = space.ToUnit(axis, point[axis]);
    const double by = std::max(step, SmallestStep(space, axis));
    for (double direction : {1.0, -1.0}) {
      const double to = unit + direction * by;
      // One step beyond the bound is the bound.
      if (to < 0 ? unit > 0 : to > 1 ? unit < 1 : true) add(axis, space.FromUnit(axis, to));
    }
  }
  return result;
}

}  // namespace fusion
