// The default: a model, which needs the fewest measurements, and whichever of the other searches has gained
// most where it sees nothing.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "server/tuner/strategies/strategy.h"

namespace fusion {
namespace {

// A space of so few points is measured as a whole.
constexpr uint64_t kTinyGrid = 12;
// The model chooses until it expects nothing better; then the others look where it cannot see, until so many
// points have not gained anything: the second number for each pair of parameters. A gain gives the model its
// turn again.
constexpr size_t kPatience = 20, kPatienceEach = 20, kMostPatience = 500;
// One point in so many is the best with a parameter at an end.
constexpr uint64_t kEndsEvery = 10;

class Portfolio : public TuningStrategy {
 public:
  Portfolio() {
    members_[kModel].strategy = MakeBayesian();
    members_[kClimb].strategy = MakeHillClimbing();
    members_[kSimplex].strategy = MakeNelderMead();
    members_[kAnneal].strategy = MakeAnnealing();
    members_[kAnneal].gains = 1;  // looks farthest: it begins
    members_[kRandom].strategy = MakeRandomSearch();
  }

  std::optional<TuningPoint> Propose(TuningKnowledge& knowledge) override {
    if (knowledge.space().grid_points() <= kTinyGrid) {
      std::optional<TuningPoint> point = exhaustive_->Propose(knowledge);
      finished_ = exhaustive_->finished();
      return point;
    }
    if (Credit(knowledge)) {
      without_model_ = false;
    } else if (members_[kModel].strategy->finished()) {
      without_model_ = true;
    }
    const size_t dimensions = knowledge.space().dimensions();
    finished_ = without_model_ &&
                since_gain_ >= std::min(kMostPatience, kPatience + kPatienceEach * dimensions * dimensions);
    if (++turn_ % kEndsEvery == 0)
      if (std::optional<TuningPoint> point = EndOfBest(knowledge)) return point;
    const size_t first = without_model_ ? MostCredited() : size_t{kModel};
    // One that waits for results, or is at its end, gives its turn to the next.
    for (size_t i = 0; i < kMembers; ++i) {
      const size_t member = (first + i) % kMembers;
      if (member == kModel && without_model_) continue;
      std::optional<TuningPoint> point = members_[member].strategy->Propose(knowledge);
      if (!point) continue;
      members_[member].uses += 1;
      proposed_by_[*point] = member;
      return point;
    }
    return std::nullopt;
  }
  std::optional<TuningPoint> ProposeAnother(TuningKnowledge& knowledge) override {
    if (without_model_ || knowledge.space().grid_points() <= kTinyGrid) return std::nullopt;
    std::optional<TuningPoint> point = members_[kModel].strategy->ProposeAnother(knowledge);
    if (!point) return std::nullopt;
    members_[kModel].uses += 1;
    proposed_by_[*point] = kModel;
    return point;
  }
  bool finished() const override { return finished_; }

 private:
  enum { kModel, kClimb, kSimplex, kAnneal, kRandom, kMembers };
  struct Member {
    std::unique_ptr<TuningStrategy> strategy;
    double uses = 0, gains = 0;  // both fade
  };

  // The best with one parameter at an end: what a parameter does there (no work for one of two devices) is
  // often not what it does near it, and neither a model nor steps see it.
  static std::optional<TuningPoint> EndOfBest(const TuningKnowledge& knowledge) {
    if (knowledge.lowest() < 0) return std::nullopt;
    const ParameterSpace& space = knowledge.space();
    const TuningPoint& best = knowledge.arms()[static_cast<size_t>(knowledge.lowest())].point;
    for (size_t axis = 0; axis < space.dimensions(); ++axis) {
      if (space.axis(axis).kind == ParameterSpace::Kind::kEnumeration || !space.Active(best, axis)) continue;
      // The nearer one first.
      const double near = space.ToUnit(axis, best[axis]) < 0.5 ? 0 : 1;
      for (double end : {near, 1 - near}) {
        TuningPoint point = best;
        point[axis] = space.FromUnit(axis, end);
        point = space.Canonical(point);
        if (space.Satisfies(point) && knowledge.Find(point) < 0 && !knowledge.IsOutstanding(point))
          return point;
      }
    }
    return std::nullopt;
  }

  // Credits what came of the points that were proposed. True: something was gained.
  bool Credit(const TuningKnowledge& knowledge) {
    bool gained = false;
    for (; credited_ < knowledge.arms().size(); ++credited_) {
      const TuningArm& arm = knowledge.arms()[credited_];
      ++since_gain_;
      const auto found = proposed_by_.find(arm.point);
      if (arm.cost < lowest_ - kLeastGain) {
        lowest_ = arm.cost;
        since_gain_ = 0;
        gained = true;
        if (found != proposed_by_.end()) members_[found->second].gains += 1;
      }
      if (found != proposed_by_.end()) proposed_by_.erase(found);
      for (Member& member : members_) {
        member.uses *= kFading;
        member.gains *= kFading;
      }
    }
    return gained;
  }

  // Auer, Cesa-Bianchi and Fischer, "Finite-time analysis of the multiarmed bandit problem", 2002, with
  // fading counts.
  size_t MostCredited() const {
    double all = 0;
    for (const Member& member : members_) all += member.uses;
    size_t best = kClimb;
    double highest = -1;
    for (size_t i = kClimb; i < kMembers; ++i) {
      const double uses = members_[i].uses + 0.5;
      const double value = members_[i].gains / uses + 0.3 * std::sqrt(std::log(2 + all) / uses);
      if (value <= highest) continue;
      highest = value;
      best = i;
    }
    return best;
  }

  static constexpr double kFading = 0.99;

  std::array<Member, kMembers> members_;
  std::unique_ptr<TuningStrategy> exhaustive_ = MakeExhaustive();
  absl::flat_hash_map<TuningPoint, size_t> proposed_by_;
  bool without_model_ = false;
  uint64_t turn_ = 0;
  size_t credited_ = 0;    // arms
  size_t since_gain_ = 0;  // arms
  double lowest_ = std::numeric_limits<double>::infinity();
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<TuningStrategy> MakePortfolio() { return std::make_unique<Portfolio>(); }

}  // namespace fusion
