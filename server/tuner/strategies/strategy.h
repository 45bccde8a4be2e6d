// One way of choosing what to run next.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/tuner/knowledge.h"

namespace fusion {

// A cost that is lower by less is lower by chance.
inline constexpr double kLeastGain = 0.01;

class TuningStrategy {
 public:
  virtual ~TuningStrategy() = default;
  // Returns a point that satisfies the constraints; none: the strategy waits for results that are
  // outstanding, or is finished. The same knowledge and the same random numbers give the same point.
  virtual std::optional<TuningPoint> Propose(TuningKnowledge& knowledge) = 0;
  // Returns a further point out of what the last Propose looked at, which costs next to nothing; none: there
  // is none, ask Propose.
  virtual std::optional<TuningPoint> ProposeAnother(TuningKnowledge& /*knowledge*/) { return std::nullopt; }
  // True: the strategy expects nothing better; another result may change that.
  virtual bool finished() const = 0;
};

// Null: there is no strategy of this name.
std::unique_ptr<TuningStrategy> MakeTuningStrategy(absl::string_view name);

std::unique_ptr<TuningStrategy> MakeExhaustive();
std::unique_ptr<TuningStrategy> MakeRandomSearch();
std::unique_ptr<TuningStrategy> MakeHillClimbing();
std::unique_ptr<TuningStrategy> MakeNelderMead();
std::unique_ptr<TuningStrategy> MakeAnnealing();
std::unique_ptr<TuningStrategy> MakeBayesian();
std::unique_ptr<TuningStrategy> MakePortfolio();

}  // namespace fusion
