#include "server/tuner/search.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/tuner/drift.h"
#include "server/tuner/knowledge.h"
#include "server/tuner/run_statistics.h"
#include "server/tuner/strategies/strategy.h"

namespace fusion {
namespace {

struct NamedStrategy {
  const char* name;
  std::unique_ptr<TuningStrategy> (*make)();
};
constexpr NamedStrategy kStrategies[] = {{"portfolio", MakePortfolio},    {"exhaustive", MakeExhaustive},
                                         {"random", MakeRandomSearch},    {"hill-climbing", MakeHillClimbing},
                                         {"nelder-mead", MakeNelderMead}, {"annealing", MakeAnnealing},
                                         {"bayesian", MakeBayesian}};

// Runs after which a difference between two configurations has been found, or there is none worth finding.
constexpr uint64_t kMostRepeats = 10;
// While the search goes on one candidate in so many is a repetition, where a choice is not separated from
// noise; more often when the best is probably among those that ran: after so many candidates, for each
// parameter.
constexpr uint64_t kRepeatEvery = 3, kRepeatEveryLater = 2, kLater = 16;
// Two configurations that kSeparated does not tell apart are alike when the standard error of their
// difference is below this.
constexpr double kTie = 0.01;
// So many configurations of earlier runs are tried first.
constexpr size_t kMostRemembered = 5;

}  // namespace

std::unique_ptr<TuningStrategy> MakeTuningStrategy(absl::string_view name) {
  for (const NamedStrategy& strategy : kStrategies)
    if (name == strategy.name || (name.empty() && &strategy == kStrategies)) return strategy.make();
  return nullptr;
}

const std::vector<std::string>& TuningStrategyNames() {
  static const auto* const names = [] {
    auto* result = new std::vector<std::string>;
    for (const NamedStrategy& strategy : kStrategies) result->push_back(strategy.name);
    return result;
  }();
  return *names;
}

struct TuningSearch::Parts {
  Parts(std::shared_ptr<const ParameterSpace> the_space, const TuningSearchOptions& the_options)
      : space(std::move(the_space)), options(the_options), knowledge(space, options.seed) {}

  std::shared_ptr<const ParameterSpace> space;
  TuningSearchOptions options;
  TuningKnowledge knowledge;
  std::unique_ptr<TuningStrategy> strategy;
  std::map<uint64_t, TuningPoint> outstanding;
  uint64_t next_candidate = 1;
  std::deque<TuningPoint> first_tries;
  DriftDetector drift;
  uint64_t turn = 0;
  TuningState state;

  void Begin() {
    knowledge.Clear();
    outstanding.clear();
    first_tries.clear();
    strategy = MakeTuningStrategy(options.strategy);
    drift.Clear();
    turn = 0;
    state.best = space->defaults();
    state.value = state.relative_error = 0;
    state.evaluations = 0;
    state.phase = v1::EXPLORING;
    state.provenance = v1::PROVENANCE_UNSPECIFIED;
  }

  double RelativeError(const TuningArm& arm) const { return knowledge.noise().RelativeError(arm.runs); }

  void Choose() {
    const int64_t best = knowledge.best();
    if (best < 0) {
      state.best = space->defaults();
      state.value = state.relative_error = 0;
      return;
    }
    const TuningArm& arm = knowledge.arms()[static_cast<size_t>(best)];
    if (arm.point != state.best || !drift.watching())
      drift.Watch(arm.cost, arm.runs.count,
                  std::max(knowledge.noise().all(), knowledge.noise().Of(arm.runs)));
    state.best = arm.point;
    state.value = arm.runs.mean;
    state.relative_error = RelativeError(arm);
    if (state.provenance == v1::PROVENANCE_UNSPECIFIED) state.provenance = v1::MEASURED;
  }

  // While the best is not told apart from all others: the one that may be the lowest of all, if it was lucky
  // so far or unlucky. That is the best itself until it has proved what it promises.
  std::optional<TuningPoint> Unseparated() const {
    const int64_t best = knowledge.best();
    if (best < 0) return std::nullopt;
    const std::vector<TuningArm>& arms = knowledge.arms();
    const TuningArm& chosen = arms[static_cast<size_t>(best)];
    const TuningArm* lowest = nullptr;
    double lowest_cost = std::numeric_limits<double>::infinity();
    const auto consider = [&](const TuningArm& arm) {
      if (arm.runs.count + arm.runs.failures >= kMostRepeats || knowledge.IsOutstanding(arm.point)) return;
      const double cost = arm.cost - kSeparated * RelativeError(arm);
      if (cost >= lowest_cost) return;
      lowest_cost = cost;
      lowest = &arm;
    };
    for (size_t index : knowledge.top()) {
      const TuningArm& arm = arms[index];
      if (!arm.works() || index == static_cast<size_t>(best)) continue;
      const double error = std::hypot(RelativeError(arm), RelativeError(chosen));
      if (error < kTie || arm.cost - chosen.cost > kSeparated * error) continue;
      consider(arm);
      consider(chosen);
    }
    if (!lowest && chosen.runs.count < 2) consider(chosen);
    if (!lowest) return std::nullopt;
    return lowest->point;
  }

  TuningCandidate Issue(TuningPoint point) {
    const uint64_t id = next_candidate++;
    knowledge.AddOutstanding(point);
    outstanding[id] = point;
    return {id, std::move(point)};
  }

  std::optional<TuningCandidate> Next(bool quickly) {
    if (state.phase == v1::CONVERGED) return std::nullopt;
    while (!first_tries.empty()) {
      TuningPoint point = std::move(first_tries.front());
      first_tries.pop_front();
      if (knowledge.Find(point) < 0 && !knowledge.IsOutstanding(point)) return Issue(std::move(point));
    }
    ++turn;
    const bool begun = knowledge.arms().size() > space->dimensions() + 2;
    const uint64_t every =
        state.evaluations < kLater * space->dimensions() ? kRepeatEvery : kRepeatEveryLater;
    if (begun && turn % every == 0)
      if (std::optional<TuningPoint> point = Unseparated()) return Issue(*std::move(point));
    if (quickly) {
      if (std::optional<TuningPoint> point = strategy->ProposeAnother(knowledge))
        return Issue(*std::move(point));
      if (begun)
        if (std::optional<TuningPoint> point = Unseparated()) return Issue(*std::move(point));
    }
    std::optional<TuningPoint> point = strategy->finished() ? std::nullopt : strategy->Propose(knowledge);
    if (point && !strategy->finished()) return Issue(*std::move(point));
    // A strategy that waits for results has none to wait for when nothing is outstanding: all points have
    // run.
    if (!strategy->finished() && !outstanding.empty()) return std::nullopt;
    // At the end what cannot be told apart is run again until it can, or is alike.
    if ((point = Unseparated())) return Issue(*std::move(point));
    if (outstanding.empty() && knowledge.best() >= 0) state.phase = v1::CONVERGED;
    return std::nullopt;
  }

  // Enough is known to say what is good, so that exploring must be worth what it costs.
  bool SomethingGoodIsKnown() const {
    const int64_t best = knowledge.best();
    return best >= 0 && state.evaluations >= 6 + 6 * space->dimensions() &&
           knowledge.arms()[static_cast<size_t>(best)].runs.count >= 2;
  }

  void Resume() {
    std::vector<TuningPoint> tries;
    for (size_t index : knowledge.top())
      if (tries.size() < kMostRemembered && knowledge.arms()[index].works())
        tries.push_back(knowledge.arms()[index].point);
    const TuningPoint best = state.best;
    const uint64_t drifts = state.drifts, generation = state.generation;
    Begin();
    first_tries.assign(tries.begin(), tries.end());
    state.best = best;
    state.phase = v1::BOUNDED;
    state.provenance = v1::MEASURED;
    state.drifts = drifts + 1;
    state.generation = generation + 1;
  }
};

absl::StatusOr<std::unique_ptr<TuningSearch>> TuningSearch::Create(
    std::shared_ptr<const ParameterSpace> space, const TuningSearchOptions& options) {
  if (!MakeTuningStrategy(options.strategy))
    return absl::InvalidArgumentError(absl::StrCat("there is no strategy ", options.strategy, "; there are ",
                                                   absl::StrJoin(TuningStrategyNames(), ", ")));
  auto parts = std::make_unique<Parts>(std::move(space), options);
  parts->state.generation = options.generation;
  parts->next_candidate = options.first_candidate;
  parts->Begin();
  return std::unique_ptr<TuningSearch>(new TuningSearch(std::move(parts)));
}

TuningSearch::TuningSearch(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
TuningSearch::~TuningSearch() = default;

void TuningSearch::Remember(const std::vector<TuningMeasurement>& earlier, v1::Provenance provenance) {
  Parts& p = *parts_;
  if (earlier.empty()) return;
  if (provenance == v1::EXACT) {
    for (const TuningMeasurement& m : earlier)
      p.knowledge.Add(p.space->Canonical(m.point), m.count, m.mean, m.squared_deviations, m.minimum,
                      m.failures);
    if (p.knowledge.best() < 0) return;
    p.Choose();
    p.state.phase = v1::BOUNDED;
  } else {
    for (const TuningMeasurement& m : earlier) {
      TuningPoint point = p.space->Canonical(m.point);
      if (!p.space->Satisfies(point) || m.count == 0) continue;
      if (std::find(p.first_tries.begin(), p.first_tries.end(), point) != p.first_tries.end()) continue;
      if (p.first_tries.size() < kMostRemembered) p.first_tries.push_back(std::move(point));
    }
    if (p.first_tries.empty()) return;
    p.state.best = p.first_tries.front();
  }
  p.state.provenance = provenance;
}

std::optional<TuningCandidate> TuningSearch::Propose() { return parts_->Next(/*quickly=*/false); }
std::optional<TuningCandidate> TuningSearch::ProposeQuickly() { return parts_->Next(/*quickly=*/true); }

void TuningSearch::Observe(const TuningMeasurement& measurement) {
  Parts& p = *parts_;
  if (measurement.proposal > 0) {
    const auto found = p.outstanding.find(measurement.proposal);
    if (found != p.outstanding.end()) {
      p.knowledge.RemoveOutstanding(found->second);
      p.outstanding.erase(found);
    }
    p.state.evaluations += measurement.count + measurement.failures;
  }
  if (measurement.count + measurement.failures == 0) return;
  const bool chosen = measurement.point == p.state.best;
  if (chosen && p.state.phase != v1::EXPLORING && measurement.count > 0) {
    const bool maximize = p.space->declaration().objective().maximize();
    const double cost = maximize ? -std::log(measurement.mean) : std::log(measurement.mean);
    if (p.drift.Add(cost, measurement.count)) p.Resume();
  }
  p.knowledge.Add(measurement.point, measurement.count, measurement.mean, measurement.squared_deviations,
                  measurement.minimum, measurement.failures);
  p.Choose();
  if (p.state.phase == v1::EXPLORING && p.SomethingGoodIsKnown()) p.state.phase = v1::BOUNDED;
}

void TuningSearch::Forget(uint64_t candidate) {
  const auto found = parts_->outstanding.find(candidate);
  if (found == parts_->outstanding.end()) return;
  parts_->knowledge.RemoveOutstanding(found->second);
  parts_->outstanding.erase(found);
}

size_t TuningSearch::outstanding() const { return parts_->outstanding.size(); }

void TuningSearch::Reset() {
  parts_->Begin();
  ++parts_->state.generation;
}

const TuningState& TuningSearch::state() const { return parts_->state; }

std::vector<TuningMeasurement> TuningSearch::Measurements(size_t most) const {
  const std::vector<TuningArm>& arms = parts_->knowledge.arms();
  std::vector<size_t> order(arms.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return arms[a].cost < arms[b].cost; });
  order.resize(std::min(most, order.size()));
  std::vector<TuningMeasurement> result;
  for (size_t index : order) {
    const TuningArm& arm = arms[index];
    const RunStatistics& runs = arm.runs;
    result.push_back({0, arm.point, runs.count, runs.mean, runs.squared_deviations(),
                      runs.count ? runs.minimum : 0, runs.failures});
  }
  return result;
}

size_t TuningSearch::configurations() const { return parts_->knowledge.arms().size(); }

const ParameterSpace& TuningSearch::space() const { return *parts_->space; }

}  // namespace fusion
