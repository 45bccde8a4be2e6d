// Bayesian optimisation for few noisy measurements: a Gaussian process of the costs, and the point of greatest expected improvement
// (Jones, Schonlau and Welch, "Efficient global optimization of expensive black-box functions", 1998), over the best expected cost
// rather than the lowest measured, which noise makes too low.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "server/tuner/strategies/gaussian_process.h"
#include "server/tuner/strategies/routine.h"
#include "server/tuner/strategies/strategy.h"

namespace fusion {
namespace {

// Of arms in one regression: its time grows with the cube.
constexpr size_t kMostObservations = 120;
// A grid of so many points is looked at as a whole.
constexpr uint64_t kSmallGrid = 1200;
constexpr int kRandomCandidates = 200;
constexpr int kCandidatesNearEach = 50;
constexpr size_t kNearBest = 3;
// Costs are relative differences up to about this far above the lowest, and logarithms of them beyond: how bad the bad ones are says
// little of where the best is.
constexpr double kLinear = 0.5;
// An expected improvement below this, relative, so many times in a row is the end.
constexpr double kNegligible = 0.002;
constexpr int kNegligibleInARow = 3;
// Of outstanding runs: results are believed to be as expected, so that the next point is another one.
constexpr size_t kMostBelieved = 16;

double NormalDensity(double z) { return std::exp(-0.5 * z * z) / std::sqrt(2 * M_PI); }
double NormalProbability(double z) { return 0.5 * std::erfc(-z / std::sqrt(2)); }

class Bayesian : public TuningStrategy {
 public:
  std::optional<TuningPoint> Propose(TuningKnowledge& knowledge) override {
    if (std::optional<TuningPoint> point = NextOfDesign(knowledge)) return point;
    if (knowledge.lowest() < 0) return std::nullopt;  // nothing works yet
    Fit(knowledge);
    return MostPromising(knowledge);
  }
  bool finished() const override { return negligible_ >= kNegligibleInARow; }
  double expected_improvement() const override { return improvement_; }
  std::optional<double> ExpectedCost(size_t arm) const override {
    const auto found = std::find(observed_.begin(), observed_.end(), arm);
    if (found == observed_.end()) return std::nullopt;
    return expected_[found - observed_.begin()];
  }

 private:
  // The ends and quarters of one parameter; of several a Latin hypercube.
  std::optional<TuningPoint> NextOfDesign(TuningKnowledge& knowledge) {
    const ParameterSpace& space = knowledge.space();
    const size_t n = space.dimensions();
    if (!designed_) {
      designed_ = true;
      design_.push_back(space.defaults());
      if (n == 1) {
        for (double unit : {0.0, 1.0, 0.25, 0.75}) design_.push_back(space.FromUnit({unit}));
      } else {
        const size_t count = std::min<size_t>(2 * n + 1, 16);
        std::vector<std::vector<double>> axes(n, std::vector<double>(count));
        for (std::vector<double>& axis : axes) {
          std::iota(axis.begin(), axis.end(), 0.0);
          std::shuffle(axis.begin(), axis.end(), knowledge.random());
        }
        for (size_t i = 0; i < count; ++i) {
          std::vector<double> units(n);
          for (size_t axis = 0; axis < n; ++axis) units[axis] = (axes[axis][i] + knowledge.Uniform()) / static_cast<double>(count);
          design_.push_back(FeasiblePoint(space, units, space.defaults()));
        }
      }
      std::reverse(design_.begin(), design_.end());
    }
    while (!design_.empty()) {
      TuningPoint point = std::move(design_.back());
      design_.pop_back();
      if (space.Satisfies(point) && knowledge.Find(point) < 0 && !knowledge.IsOutstanding(point)) return point;
    }
    return std::nullopt;
  }

  static Eigen::VectorXd Row(const std::vector<double>& units) {
    return Eigen::Map<const Eigen::VectorXd>(units.data(), static_cast<Eigen::Index>(units.size()));
  }

  void Fit(TuningKnowledge& knowledge) {
    const std::vector<TuningArm>& arms = knowledge.arms();
    const TuningArm& best = arms[static_cast<size_t>(knowledge.lowest())];
    observed_.resize(arms.size());
    std::iota(observed_.begin(), observed_.end(), size_t{0});
    if (observed_.size() > kMostObservations) {
      // A third of them the best ones, the others the nearest to the best one.
      const auto third = observed_.begin() + kMostObservations / 3;
      const auto kept = observed_.begin() + kMostObservations;
      std::nth_element(observed_.begin(), third, observed_.end(), [&](size_t a, size_t b) { return arms[a].cost < arms[b].cost; });
      const auto distance = [&](size_t arm) {
        double sum = 0;
        for (size_t i = 0; i < best.units.size(); ++i)
          sum += (arms[arm].units[i] - best.units[i]) * (arms[arm].units[i] - best.units[i]);
        return sum;
      };
      std::nth_element(third, kept, observed_.end(), [&](size_t a, size_t b) { return distance(a) < distance(b); });
      observed_.erase(kept, observed_.end());
      std::sort(observed_.begin(), observed_.end());
    }

    lowest_ = best.cost;
    double highest = lowest_;
    for (size_t arm : observed_)
      if (arms[arm].works()) highest = std::max(highest, arms[arm].cost);
    const auto rows = static_cast<Eigen::Index>(observed_.size());
    Eigen::MatrixXd inputs(rows, static_cast<Eigen::Index>(best.units.size()));
    Eigen::VectorXd costs(rows), variances(rows);
    const double noise = knowledge.noise();
    for (Eigen::Index i = 0; i < rows; ++i) {
      const TuningArm& arm = arms[observed_[static_cast<size_t>(i)]];
      inputs.row(i) = Row(arm.units).transpose();
      costs[i] = Compressed(arm.works() ? arm.cost : highest + kLinear);
      variances[i] = noise * noise / std::max(1.0, arm.independent());
    }
    if (!process_) {
      std::vector<bool> categorical;
      for (size_t i = 0; i < best.units.size(); ++i)
        categorical.push_back(knowledge.space().axis(i).kind == ParameterSpace::Kind::kEnumeration);
      process_ = std::make_unique<GaussianProcess>(std::move(categorical));
    }
    // What the likelihood says changes little once there is much.
    const bool choose = arms.size() < 30 || arms.size() >= chosen_with_ + 5 || arms.size() < chosen_with_;
    if (choose) chosen_with_ = arms.size();
    process_->Fit(inputs, costs, variances, choose);
    Eigen::VectorXd means, deviations;
    process_->Predict(inputs, means, deviations);
    target_ = std::numeric_limits<double>::infinity();
    expected_.resize(rows);
    for (Eigen::Index i = 0; i < rows; ++i) {
      expected_[i] = Uncompressed(means[i]);
      if (arms[observed_[static_cast<size_t>(i)]].works()) target_ = std::min(target_, means[i]);
    }
    std::vector<TuningPoint> pending;
    for (const auto& [point, count] : knowledge.outstanding()) pending.push_back(point);
    std::sort(pending.begin(), pending.end());  // a hash map has another order in each process
    if (pending.size() > kMostBelieved) pending.resize(kMostBelieved);
    for (const TuningPoint& point : pending) process_->Believe(Row(knowledge.space().ToUnit(point)));
  }

  std::optional<TuningPoint> MostPromising(TuningKnowledge& knowledge) {
    const std::vector<TuningPoint> candidates = Candidates(knowledge);
    if (candidates.empty()) {
      if (knowledge.outstanding().empty()) negligible_ = kNegligibleInARow;
      return std::nullopt;
    }
    Eigen::MatrixXd inputs(static_cast<Eigen::Index>(candidates.size()), static_cast<Eigen::Index>(knowledge.space().dimensions()));
    for (size_t i = 0; i < candidates.size(); ++i)
      inputs.row(static_cast<Eigen::Index>(i)) = Row(knowledge.space().ToUnit(candidates[i])).transpose();
    Eigen::VectorXd means, deviations;
    process_->Predict(inputs, means, deviations);
    size_t chosen = 0;
    improvement_ = -1;
    for (size_t i = 0; i < candidates.size(); ++i) {
      const double mean = means[static_cast<Eigen::Index>(i)], deviation = deviations[static_cast<Eigen::Index>(i)];
      const double z = (target_ - mean) / deviation;
      const double expected = deviation * (z * NormalProbability(z) + NormalDensity(z));
      if (expected <= improvement_) continue;
      improvement_ = expected;
      chosen = i;
    }
    negligible_ = improvement_ < kNegligible ? negligible_ + 1 : 0;
    return candidates[chosen];
  }

  // Points that were not run.
  std::vector<TuningPoint> Candidates(TuningKnowledge& knowledge) const {
    const ParameterSpace& space = knowledge.space();
    std::vector<TuningPoint> result;
    const auto add = [&](TuningPoint point) {
      if (space.Satisfies(point) && knowledge.Find(point) < 0 && !knowledge.IsOutstanding(point)) result.push_back(std::move(point));
    };
    if (space.grid_points() <= kSmallGrid) {
      for (uint64_t i = 0; i < space.grid_points(); ++i) add(space.Canonical(space.GridPoint(i)));
      return result;
    }
    for (int i = 0; i < kRandomCandidates; ++i) add(knowledge.RandomPoint());
    const size_t near = std::min(kNearBest, knowledge.top().size());
    for (size_t rank = 0; rank < near; ++rank) {
      const TuningArm& arm = knowledge.arms()[knowledge.top()[rank]];
      if (!arm.works()) break;
      for (int i = 0; i < kCandidatesNearEach; ++i) {
        // All scales alike; each parameter moves in half of them.
        const double width = std::exp2(-1 - 9 * knowledge.Uniform());
        std::vector<double> units = arm.units;
        for (size_t axis = 0; axis < units.size(); ++axis) {
          if (units.size() > 1 && knowledge.Uniform() < 0.5) continue;
          if (space.axis(axis).kind == ParameterSpace::Kind::kEnumeration)
            units[axis] = knowledge.Uniform();
          else
            units[axis] = std::clamp(units[axis] + width * knowledge.Normal(), 0.0, 1.0);
        }
        add(space.FromUnit(units));
      }
      for (double step : {0.0, 0.02, 0.1})
        for (TuningPoint& neighbour : Neighbours(space, arm.point, step)) add(std::move(neighbour));
    }
    return result;
  }

  double Compressed(double cost) const { return lowest_ + kLinear * std::asinh((cost - lowest_) / kLinear); }
  double Uncompressed(double cost) const { return lowest_ + kLinear * std::sinh((cost - lowest_) / kLinear); }

  std::vector<TuningPoint> design_;  // the next one last
  bool designed_ = false;
  std::unique_ptr<GaussianProcess> process_;
  size_t chosen_with_ = 0;
  std::vector<size_t> observed_;     // arms of the last Fit, ascending
  Eigen::VectorXd expected_;         // their costs
  double lowest_ = 0;                // what Compressed leaves as it is
  double target_ = 0;                // lowest expected cost of an arm, compressed
  double improvement_ = -1;
  int negligible_ = 0;
};

}  // namespace

std::unique_ptr<TuningStrategy> MakeBayesian() { return std::make_unique<Bayesian>(); }

}  // namespace fusion
