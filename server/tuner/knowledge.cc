#include "server/tuner/knowledge.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace fusion {
namespace {

// What noise is before anything was measured twice, and how many measurements that counts as.
constexpr double kUsualNoise = 0.05;
constexpr double kUsualNoiseFreedom = 2;
// Of an arm's own noise: that of all arms counts as so many measurements.
constexpr double kAsOthers = 8;
constexpr uint64_t kOftenEnough = 6;
// Degrees of freedom that one arm may bring in: one that ran a million times says nothing of the others.
constexpr double kMostFreedom = 30;

double NoiseFreedom(const TuningArm& arm) {
  return arm.count < 2 ? 0 : std::min(static_cast<double>(arm.count - 1), kMostFreedom);
}
double NoiseSum(const TuningArm& arm) {
  if (arm.count < 2) return 0;
  return arm.squared_deviations / static_cast<double>(arm.count - 1) / (arm.mean * arm.mean) *
         NoiseFreedom(arm);
}

}  // namespace

TuningKnowledge::TuningKnowledge(std::shared_ptr<const ParameterSpace> space, uint64_t seed)
    : space_(std::move(space)), random_(seed), maximize_(space_->declaration().objective().maximize()) {}

int64_t TuningKnowledge::Find(const TuningPoint& point) const {
  const auto found = index_.find(point);
  return found == index_.end() ? -1 : static_cast<int64_t>(found->second);
}

double TuningKnowledge::noise() const {
  return std::sqrt((kUsualNoiseFreedom * kUsualNoise * kUsualNoise + noise_sum_) /
                   (kUsualNoiseFreedom + noise_freedom_));
}

double TuningKnowledge::noise(const TuningArm& arm) const {
  const double all = noise();
  if (arm.count < kOftenEnough) return all;
  const double own = arm.squared_deviations / (arm.mean * arm.mean),
               freedom = static_cast<double>(arm.count - 1);
  return std::sqrt((own + kAsOthers * all * all) / (freedom + kAsOthers));
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
  noise_sum_ -= NoiseSum(arm);
  noise_freedom_ -= NoiseFreedom(arm);
  arm.failures += failures;
  if (count > 0) {
    // Chan's formula for two samples.
    const auto old_count = static_cast<double>(arm.count), new_count = static_cast<double>(count);
    const double difference = mean - arm.mean;
    arm.count += count;
    arm.mean += difference * new_count / static_cast<double>(arm.count);
    arm.squared_deviations +=
        squared_deviations + difference * difference * old_count * new_count / static_cast<double>(arm.count);
    arm.minimum = std::min(arm.minimum, minimum);
  }
  noise_sum_ = std::max(0.0, noise_sum_ + NoiseSum(arm));
  noise_freedom_ += NoiseFreedom(arm);
  arm.cost = !arm.works() ? std::numeric_limits<double>::infinity()
             : maximize_  ? -std::log(arm.mean)
                          : std::log(arm.mean);
  KeepTop(static_cast<size_t>(index));
  return index;
}

// Constant work but when the arms of the list have become worse than one outside may be: then all are looked
// at.
void TuningKnowledge::KeepTop(size_t changed) {
  const auto cheaper = [&](size_t a, size_t b) { return arms_[a].cost < arms_[b].cost; };
  if (std::find(top_.begin(), top_.end(), changed) == top_.end()) top_.push_back(changed);
  std::stable_sort(top_.begin(), top_.end(), cheaper);
  if (top_.size() > kTop) {
    others_ = std::min(others_, arms_[top_.back()].cost);
    top_.pop_back();
  }
  if (arms_[top_[0]].cost <= others_) return;
  top_.resize(arms_.size());
  std::iota(top_.begin(), top_.end(), size_t{0});
  const size_t kept = std::min(kTop, top_.size());
  std::partial_sort(top_.begin(), top_.begin() + static_cast<std::ptrdiff_t>(kept), top_.end(), cheaper);
  others_ = std::numeric_limits<double>::infinity();
  for (size_t i = kept; i < top_.size(); ++i) others_ = std::min(others_, arms_[top_[i]].cost);
  top_.resize(kept);
}

void TuningKnowledge::Clear() {
  arms_.clear();
  index_.clear();
  outstanding_.clear();
  top_.clear();
  others_ = std::numeric_limits<double>::infinity();
  noise_sum_ = noise_freedom_ = 0;
}

void TuningKnowledge::RemoveOutstanding(const TuningPoint& point) {
  const auto found = outstanding_.find(point);
  if (found != outstanding_.end() && --found->second == 0) outstanding_.erase(found);
}

TuningPoint TuningKnowledge::RandomPoint() {
  std::vector<double> units(space_->dimensions());
  for (int i = 0; i < 10'000; ++i) {
    for (double& unit : units) unit = Uniform();
    TuningPoint point = space_->FromUnit(units);
    if (space_->Satisfies(point)) return point;
  }
  return space_->defaults();
}

}  // namespace fusion
