// Bayesian optimisation for few noisy measurements: a Gaussian process of the costs, and the point of
// greatest expected improvement (Jones, Schonlau and Welch, "Efficient global optimization of expensive
// black-box functions", 1998), over the best expected cost rather than the lowest measured, which noise makes
// too low. In turns over the whole space and in a region around the best that shrinks where nothing is gained
// (Eriksson and others, "Scalable global optimization via local Bayesian optimization", 2019): one set of
// lengths cannot describe both the whole and a narrow valley.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "server/tuner/strategies/gaussian_process.h"
#include "server/tuner/strategies/routine.h"
#include "server/tuner/strategies/strategy.h"
#include "server/tuner/strategies/turns.h"

namespace fusion {
namespace {

// One regression has so many arms: its time grows with the cube.
constexpr size_t kMostObservations = 120;
// A grid of so many points is looked at as a whole.
constexpr uint64_t kSmallGrid = 1200;
constexpr int kRandomCandidates = 200;
// Where constraints leave few points, each of which must be searched for.
constexpr int kSparseCandidates = 40;
constexpr int kCandidatesNearEach = 50;
constexpr size_t kNearBest = 3;
// Costs are relative differences up to about this far above the lowest, and logarithms of them beyond: how
// bad the bad ones are says little of where the best is.
constexpr double kLinear = 0.5;
// The first points, so many for each parameter, keep this distance from each other; with the next ones,
// rather than a point beside one that ran less than so often, that one runs again.
constexpr double kApart = 0.02;
constexpr size_t kApartArms = 14, kRepeatArms = 30;
constexpr uint64_t kRunsOfNear = 4;
constexpr size_t kMostInRegion = 60;
constexpr double kFirstRadius = 0.2, kLargestRadius = 0.4, kSmallestRadius = 0.004;
// An expected improvement below this, relative, so many times in a row is the end.
constexpr double kNegligible = 0.002;
constexpr int kNegligibleInARow = 4;
// So many outstanding runs are believed to give what is expected, so that the next point is another one.
constexpr size_t kMostBelieved = 16;

// Candidates of one look that are kept for programs which wait, and their distance where the whole space was
// looked at.
constexpr size_t kMostOthers = 100;
constexpr double kOthersApart = 0.1;

double NormalDensity(double z) { return std::exp(-0.5 * z * z) / std::sqrt(2 * M_PI); }
double NormalProbability(double z) { return 0.5 * std::erfc(-z / std::sqrt(2)); }

// Regression over some arms, in coordinates where the part of the space that is looked at is the unit cube.
class CostModel {
 public:
  explicit CostModel(const ParameterSpace& space) : process_(Categories(space)) {}

  // At least one of the arms works.
  void Fit(const TuningKnowledge& knowledge, const std::vector<size_t>& arms, std::vector<double> origin,
           double scale) {
    origin_ = std::move(origin);
    scale_ = scale;
    double highest = -std::numeric_limits<double>::infinity();
    lowest_ = std::numeric_limits<double>::infinity();
    for (size_t index : arms) {
      const TuningArm& arm = knowledge.arms()[index];
      if (!arm.works()) continue;
      lowest_ = std::min(lowest_, arm.cost);
      highest = std::max(highest, arm.cost);
    }
    const auto rows = static_cast<Eigen::Index>(arms.size());
    Eigen::MatrixXd inputs(rows, static_cast<Eigen::Index>(origin_.size()));
    Eigen::VectorXd costs(rows), variances(rows);
    for (Eigen::Index i = 0; i < rows; ++i) {
      const TuningArm& arm = knowledge.arms()[arms[static_cast<size_t>(i)]];
      inputs.row(i) = Row(arm.units).transpose();
      costs[i] = Compressed(arm.works() ? arm.cost : highest + kLinear);
      const double error = knowledge.noise().RelativeError(arm.runs);
      variances[i] = error * error;
    }
    // The likelihood changes little once there are many arms.
    process_.Fit(inputs, costs, variances,
                 rows < 30 ? GaussianProcess::Choice::kAll : GaussianProcess::Choice::kOne);
    Eigen::VectorXd means, deviations;
    process_.Predict(inputs, means, deviations);
    target_ = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < arms.size(); ++i)
      if (knowledge.arms()[arms[i]].works()) target_ = std::min(target_, means[static_cast<Eigen::Index>(i)]);
  }

  void Believe(const std::vector<std::vector<double>>& units) {
    if (!units.empty()) process_.Believe(Rows(units));
  }

  // The expected improvement of each candidate, relative, over the best expected cost of an arm.
  std::vector<double> Improvements(const std::vector<std::vector<double>>& candidates) const {
    Eigen::VectorXd means, deviations;
    process_.Predict(Rows(candidates), means, deviations);
    std::vector<double> result(candidates.size());
    for (size_t i = 0; i < candidates.size(); ++i) {
      const double mean = means[static_cast<Eigen::Index>(i)],
                   deviation = deviations[static_cast<Eigen::Index>(i)];
      const double z = (target_ - mean) / deviation;
      result[i] = deviation * (z * NormalProbability(z) + NormalDensity(z));
    }
    return result;
  }

 private:
  static std::vector<bool> Categories(const ParameterSpace& space) {
    std::vector<bool> result;
    for (size_t i = 0; i < space.dimensions(); ++i)
      result.push_back(space.axis(i).kind == ParameterSpace::Kind::kEnumeration);
    return result;
  }
  Eigen::VectorXd Row(const std::vector<double>& units) const {
    Eigen::VectorXd row(static_cast<Eigen::Index>(units.size()));
    for (size_t i = 0; i < units.size(); ++i)
      row[static_cast<Eigen::Index>(i)] = (units[i] - origin_[i]) / scale_;
    return row;
  }
  Eigen::MatrixXd Rows(const std::vector<std::vector<double>>& units) const {
    Eigen::MatrixXd rows(static_cast<Eigen::Index>(units.size()), static_cast<Eigen::Index>(origin_.size()));
    for (size_t i = 0; i < units.size(); ++i)
      rows.row(static_cast<Eigen::Index>(i)) = Row(units[i]).transpose();
    return rows;
  }
  double Compressed(double cost) const { return lowest_ + kLinear * std::asinh((cost - lowest_) / kLinear); }

  GaussianProcess process_;
  std::vector<double> origin_;
  double scale_ = 1;
  double lowest_ = 0;  // what Compressed leaves as it is
  double target_ = 0;  // lowest expected cost of an arm, compressed
};

class Bayesian : public TuningStrategy {
 public:
  std::optional<TuningPoint> Propose(TuningKnowledge& knowledge) override {
    if (std::optional<TuningPoint> point = NextOfDesign(knowledge)) return point;
    if (knowledge.lowest() < 0) return std::nullopt;  // nothing works yet
    const ParameterSpace& space = knowledge.space();
    if (!whole_) {
      whole_ = std::make_unique<CostModel>(space);
      near_ = std::make_unique<CostModel>(space);
    }
    JudgeRegion(knowledge);
    const TuningArm best = knowledge.arms()[static_cast<size_t>(knowledge.lowest())];
    std::vector<double> origin(space.dimensions(), 0.0);
    // Also when the region's turn is next: what it says of lengths changes a step at each fit.
    whole_->Fit(knowledge, Nearest(knowledge, best, kMostObservations), origin, 1);
    std::vector<TuningPoint> candidates;
    CostModel* model = whole_.get();
    const bool region = ++turn_ % 2 == 0;
    if (region) {
      for (size_t i = 0; i < origin.size(); ++i) origin[i] = best.units[i] - radius_;
      near_->Fit(knowledge, InRegion(knowledge, best), origin, 2 * radius_);
      model = near_.get();
      candidates = RegionCandidates(knowledge, best);
    }
    if (candidates.empty()) {
      model = whole_.get();
      candidates = WholeCandidates(knowledge);
    }
    if (candidates.empty()) {
      if (knowledge.outstanding().empty()) negligible_ = kNegligibleInARow;
      return std::nullopt;
    }
    const double apart = region ? std::min(kApart, radius_ / 8) : kApart;
    if (knowledge.arms().size() < kApartArms * space.dimensions()) LeaveOutNear(knowledge, apart, candidates);
    std::vector<TuningPoint> pending;
    for (const auto& [point, count] : knowledge.outstanding()) pending.push_back(point);
    std::sort(pending.begin(), pending.end());  // a hash map has another order in each process
    if (pending.size() > kMostBelieved) pending.resize(kMostBelieved);
    model->Believe(UnitsOf(space, pending));
    const std::vector<double> improvements = model->Improvements(UnitsOf(space, candidates));
    std::vector<size_t> order(candidates.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return improvements[a] > improvements[b]; });
    const TuningPoint chosen = candidates[order.front()];
    negligible_ = improvements[order.front()] < kNegligible ? negligible_ + 1 : 0;
    others_.clear();
    other_distance_ = region ? radius_ / 2 : kOthersApart;
    for (size_t i : order)
      if (others_.size() < kMostOthers) others_.push_back(candidates[i]);
    given_ = {chosen};
    std::reverse(others_.begin(), others_.end());
    if (knowledge.arms().size() < kRepeatArms * space.dimensions())
      if (const TuningArm* near = SeldomRunNear(knowledge, chosen, apart)) return near->point;
    if (region) {
      tried_in_region_ = chosen;
      cost_before_ = best.cost;
    }
    return chosen;
  }
  // The next best that is not beside one which was given: what that tells of its surroundings is not known
  // yet.
  std::optional<TuningPoint> ProposeAnother(TuningKnowledge& knowledge) override {
    if (finished()) return std::nullopt;
    const ParameterSpace& space = knowledge.space();
    while (!others_.empty()) {
      TuningPoint point = std::move(others_.back());
      others_.pop_back();
      if (knowledge.Find(point) >= 0 || knowledge.IsOutstanding(point)) continue;
      const std::vector<double> units = space.ToUnit(point);
      if (std::any_of(given_.begin(), given_.end(), [&](const TuningPoint& given) {
            return Distance(space.ToUnit(given), units) < other_distance_ * other_distance_;
          }))
        continue;
      given_.push_back(point);
      return point;
    }
    return std::nullopt;
  }
  bool finished() const override { return negligible_ >= kNegligibleInARow; }

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
          for (size_t axis = 0; axis < n; ++axis)
            units[axis] = (axes[axis][i] + knowledge.Uniform()) / static_cast<double>(count);
          design_.push_back(FeasiblePoint(space, units, space.defaults()));
        }
      }
      std::reverse(design_.begin(), design_.end());
    }
    while (!design_.empty()) {
      TuningPoint point = std::move(design_.back());
      design_.pop_back();
      if (space.Satisfies(point) && knowledge.Find(point) < 0 && !knowledge.IsOutstanding(point))
        return point;
    }
    return std::nullopt;
  }

  static std::vector<std::vector<double>> UnitsOf(const ParameterSpace& space,
                                                  const std::vector<TuningPoint>& points) {
    std::vector<std::vector<double>> units;
    for (const TuningPoint& point : points) units.push_back(space.ToUnit(point));
    return units;
  }

  static double Distance(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
  }

  // All arms, or of many the best third and the nearest to the best one; ascending.
  static std::vector<size_t> Nearest(const TuningKnowledge& knowledge, const TuningArm& best, size_t most) {
    const std::vector<TuningArm>& arms = knowledge.arms();
    std::vector<size_t> result(arms.size());
    std::iota(result.begin(), result.end(), size_t{0});
    if (result.size() <= most) return result;
    const auto third = result.begin() + static_cast<std::ptrdiff_t>(most / 3),
               kept = result.begin() + static_cast<std::ptrdiff_t>(most);
    std::nth_element(result.begin(), third, result.end(),
                     [&](size_t a, size_t b) { return arms[a].cost < arms[b].cost; });
    std::nth_element(third, kept, result.end(), [&](size_t a, size_t b) {
      return Distance(arms[a].units, best.units) < Distance(arms[b].units, best.units);
    });
    result.erase(kept, result.end());
    std::sort(result.begin(), result.end());
    return result;
  }

  // The nearest to the best, as far as they are in the region or a little outside, but some in any case.
  std::vector<size_t> InRegion(const TuningKnowledge& knowledge, const TuningArm& best) const {
    const std::vector<TuningArm>& arms = knowledge.arms();
    std::vector<size_t> result(arms.size());
    std::iota(result.begin(), result.end(), size_t{0});
    const auto far = [&](size_t arm) {
      double most = 0;
      for (size_t i = 0; i < best.units.size(); ++i)
        if (knowledge.space().axis(i).kind != ParameterSpace::Kind::kEnumeration)
          most = std::max(most, std::abs(arms[arm].units[i] - best.units[i]));
      return most;
    };
    std::stable_sort(result.begin(), result.end(), [&](size_t a, size_t b) { return far(a) < far(b); });
    size_t kept = 0;
    while (kept < std::min(result.size(), kMostInRegion) &&
           (kept < 2 * best.units.size() + 2 || far(result[kept]) <= 1.5 * radius_))
      ++kept;
    result.resize(kept);
    std::sort(result.begin(), result.end());
    return result;
  }

  // Judges what came of the last point in the region.
  void JudgeRegion(const TuningKnowledge& knowledge) {
    if (tried_in_region_.empty()) return;
    const int64_t arm = knowledge.Find(tried_in_region_);
    if (arm < 0) return;
    tried_in_region_.clear();
    if (knowledge.arms()[static_cast<size_t>(arm)].cost < cost_before_ - kLeastGain) {
      failures_ = 0;
      radius_ = std::min(kLargestRadius, radius_ * 2);
    } else if (++failures_ > knowledge.space().dimensions()) {
      failures_ = 0;
      radius_ /= 2;
      if (radius_ < kSmallestRadius) radius_ = kLargestRadius;
    }
  }

  std::vector<TuningPoint> RegionCandidates(TuningKnowledge& knowledge, const TuningArm& best) const {
    const ParameterSpace& space = knowledge.space();
    std::vector<TuningPoint> result;
    for (int i = 0; i < CandidatesOf(space); ++i) {
      std::vector<double> units = best.units;
      for (size_t axis = 0; axis < units.size(); ++axis) {
        if (space.axis(axis).kind == ParameterSpace::Kind::kEnumeration) {
          if (knowledge.Uniform() < 0.3) units[axis] = knowledge.Uniform();
        } else if (units.size() < 4 || knowledge.Uniform() < 0.5) {
          units[axis] += (2 * knowledge.Uniform() - 1) * std::max(radius_, SmallestStep(space, axis));
        }
      }
      AddCandidate(knowledge,
                   space.sparse() ? FeasiblePoint(space, units, best.point) : space.FromUnit(units), result);
    }
    return result;
  }

  static int CandidatesOf(const ParameterSpace& space) {
    return space.sparse() && !space.listed() ? kSparseCandidates : kRandomCandidates;
  }

  std::vector<TuningPoint> WholeCandidates(TuningKnowledge& knowledge) const {
    const ParameterSpace& space = knowledge.space();
    std::vector<TuningPoint> result;
    if (space.grid_points() <= kSmallGrid) {
      for (uint64_t i = 0; i < space.grid_points(); ++i)
        AddCandidate(knowledge, space.Canonical(space.GridPoint(i)), result);
      return result;
    }
    for (int i = 0; i < CandidatesOf(space); ++i) AddCandidate(knowledge, knowledge.RandomPoint(), result);
    const std::vector<size_t> top = knowledge.top();
    for (size_t rank = 0; rank < std::min(kNearBest, top.size()); ++rank) {
      const TuningArm& arm = knowledge.arms()[top[rank]];
      if (!arm.works()) break;
      for (int i = 0; i < kCandidatesNearEach; ++i) {
        // All scales alike; each parameter moves in half of them.
        const double width = std::exp2(-1 - 6 * knowledge.Uniform());
        std::vector<double> units = arm.units;
        for (size_t axis = 0; axis < units.size(); ++axis) {
          if (units.size() > 1 && knowledge.Uniform() < 0.5) continue;
          if (space.axis(axis).kind == ParameterSpace::Kind::kEnumeration)
            units[axis] = knowledge.Uniform();
          else
            units[axis] = std::clamp(units[axis] + width * knowledge.Normal(), 0.0, 1.0);
        }
        AddCandidate(knowledge, space.FromUnit(units), result);
      }
      for (TuningPoint& neighbour : Neighbours(space, arm.point, 0.02))
        AddCandidate(knowledge, std::move(neighbour), result);
    }
    return result;
  }

  static void AddCandidate(const TuningKnowledge& knowledge, TuningPoint point,
                           std::vector<TuningPoint>& to) {
    LetOthersRun();
    if (knowledge.space().Satisfies(point) && knowledge.Find(point) < 0 && !knowledge.IsOutstanding(point))
      to.push_back(std::move(point));
  }

  // Leaves out what is that near to an arm, unless that leaves nothing.
  static void LeaveOutNear(const TuningKnowledge& knowledge, double distance,
                           std::vector<TuningPoint>& candidates) {
    std::vector<TuningPoint> kept;
    for (const TuningPoint& candidate : candidates) {
      LetOthersRun();
      const std::vector<double> units = knowledge.space().ToUnit(candidate);
      if (std::all_of(knowledge.arms().begin(), knowledge.arms().end(), [&](const TuningArm& arm) {
            return Distance(arm.units, units) >= distance * distance;
          }))
        kept.push_back(candidate);
    }
    if (!kept.empty()) candidates = std::move(kept);
  }

  // An arm so near to the point that few runs cannot tell them apart, and that ran seldom itself.
  static const TuningArm* SeldomRunNear(const TuningKnowledge& knowledge, const TuningPoint& point,
                                        double distance) {
    const std::vector<double> units = knowledge.space().ToUnit(point);
    const TuningArm* nearest = nullptr;
    double least = distance * distance;
    for (const TuningArm& arm : knowledge.arms()) {
      const double found = Distance(arm.units, units);
      if (found >= least) continue;
      least = found;
      nearest = &arm;
    }
    return nearest && nearest->works() && nearest->runs.count < kRunsOfNear &&
                   !knowledge.IsOutstanding(nearest->point)
               ? nearest
               : nullptr;
  }

  std::vector<TuningPoint> design_;  // the next one last
  bool designed_ = false;
  std::unique_ptr<CostModel> whole_, near_;
  uint64_t turn_ = 0;
  double radius_ = kFirstRadius;  // of the region, in unit coordinates
  size_t failures_ = 0;           // in the region, in a row
  TuningPoint tried_in_region_;   // empty: none, or its result is known
  double cost_before_ = 0;
  int negligible_ = 0;
  // The last look at all left candidates that were not given, the best last, those that were, and how far
  // they keep apart.
  std::vector<TuningPoint> others_, given_;
  double other_distance_ = 0;
};

}  // namespace

std::unique_ptr<TuningStrategy> MakeBayesian() { return std::make_unique<Bayesian>(); }

}  // namespace fusion
