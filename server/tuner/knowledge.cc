#include "server/tuner/knowledge.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace fusion {
namespace {

// Points at random of which one satisfies the constraints, as a rule.
constexpr int kRandomTries = 1000;

}  // namespace

TuningKnowledge::TuningKnowledge(std::shared_ptr<const ParameterSpace> space, uint64_t seed)
    : space_(std::move(space)), random_(seed), maximize_(space_->declaration().objective().maximize()) {}

int64_t TuningKnowledge::Find(const TuningPoint& point) const {
  const auto found = index_.find(point);
  return found == index_.end() ? -1 : static_cast<int64_t>(found->second);
}

int64_t TuningKnowledge::Add(const TuningPoint& point, uint64_t count, double mean, double squared_deviations,
                             double minimum, uint64_t failures) {
  int64_t index = Find(point);
  if (index < 0) {
    if (arms_.size() >= kMostArms) return -1;
    index = static_cast<int64_t>(arms_.size());
    TuningArm arm;
    arm.point = point;
    arm.units = space_->ToUnit(point);
    arms_.push_back(std::move(arm));
    index_[point] = static_cast<size_t>(index);
  }
  TuningArm& arm = arms_[static_cast<size_t>(index)];
  by_cost_.erase({arm.cost, static_cast<size_t>(index)});
  noise_.Remove(arm.runs);
  arm.runs.Add({count, mean, squared_deviations, minimum, failures});
  noise_.Add(arm.runs);
  arm.cost = arm.runs.Cost(maximize_);
  by_cost_.insert({arm.cost, static_cast<size_t>(index)});
  return index;
}

int64_t TuningKnowledge::best() const {
  int64_t best = -1;
  double lowest = std::numeric_limits<double>::infinity();
  // An arm is never believed to be below its cost.
  for (const auto& [cost, index] : by_cost_) {
    if (cost > lowest || !arms_[index].works()) break;
    const double believed = noise_.Believed(arms_[index].runs, maximize_);
    if (believed > lowest ||
        (believed == lowest && !(arms_[index].point < arms_[static_cast<size_t>(best)].point)))
      continue;
    lowest = believed;
    best = static_cast<int64_t>(index);
  }
  return best;
}

std::vector<size_t> TuningKnowledge::top() const {
  std::vector<size_t> top;
  for (const auto& [cost, index] : by_cost_) {
    if (top.size() == kTop) break;
    top.push_back(index);
  }
  return top;
}

void TuningKnowledge::Clear() {
  arms_.clear();
  index_.clear();
  outstanding_.clear();
  by_cost_.clear();
  noise_ = RunNoise();
}

void TuningKnowledge::RemoveOutstanding(const TuningPoint& point) {
  const auto found = outstanding_.find(point);
  if (found != outstanding_.end() && --found->second == 0) outstanding_.erase(found);
}

TuningPoint TuningKnowledge::RandomPoint() {
  if (space_->listed())
    return space_->GridPoint(static_cast<uint64_t>(Uniform() * static_cast<double>(space_->grid_points())));
  std::vector<double> units(space_->dimensions());
  const auto draw = [&] {
    for (double& unit : units) unit = Uniform();
  };
  if (!space_->sparse()) {
    for (int i = 0; i < kRandomTries; ++i) {
      draw();
      TuningPoint point = space_->FromUnit(units);
      if (space_->Satisfies(point)) return point;
    }
  }
  draw();
  return space_->NearPoint(units).value_or(space_->defaults());
}

}  // namespace fusion
