#include "server/tuner/live_tuning.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cmath>
#include <optional>

#include "server/tuner/declared_section.h"
#include "server/tuner/strategies/turns.h"

namespace fusion {
namespace {

constexpr size_t kMostReady = 16;

size_t Unproposed(const std::vector<TuningMeasurement>& measured) {
  return std::count_if(measured.begin(), measured.end(),
                       [](const TuningMeasurement& measurement) { return measurement.proposal == 0; });
}

}  // namespace

uint64_t PublishedTuning::GenerationOf(uint64_t candidate) const {
  uint64_t generation = generations.front().second;
  for (const auto& [first, of] : generations)
    if (first <= candidate) generation = of;
  return generation;
}

LiveTuning::LiveTuning(Parts parts, const LiveTuningOptions& options)
    : options_(options),
      parts_(std::move(parts)),
      space_(&parts_.search->space()),
      desk_({.exploration_share = options.exploration_share,
             .provenance_tuning = parts_.provenance_tuning,
             .metrics = parts_.metrics},
            parts_.search->state(), parts_.cost_before),
      points_(parts_.convergence_points) {
  last_candidate_ = parts_.first_candidate - 1;
  known_ = parts_.search->state();
  generations_ = {{parts_.first_candidate, known_.generation}};
  Publish();
}

std::shared_ptr<const PublishedTuning> LiveTuning::published() const {
  std::lock_guard lock(mutex_);
  return published_;
}

size_t LiveTuning::most_configurations() const {
  std::lock_guard lock(mutex_);
  return published_->configurations + unproposed_;
}

void LiveTuning::Join(const TuningMember& member, std::shared_ptr<ProgramOutbox> outbox) {
  desk_.Join(member, std::move(outbox));
}

void LiveTuning::Leave(const TuningMember& member) { Post({.forgotten = desk_.Leave(member)}); }

void LiveTuning::SetDemand(const TuningMember& member, uint32_t wanted) {
  desk_.SetDemand(member, wanted);
  Post({});
}

void LiveTuning::Report(const TuningMember& member, std::vector<TuningMeasurement> measured,
                        std::vector<uint64_t> done, std::vector<uint64_t> refused,
                        const ExplorationCost& cost) {
  for (const TuningMeasurement& measurement : measured)
    if (measurement.proposal != 0) done.push_back(measurement.proposal);
  // Only what this program was given is forgotten.
  const std::vector<uint64_t> given = desk_.Done(member, refused);
  desk_.Done(member, done);
  desk_.AddCost(cost);
  Post({.measured = std::move(measured), .forgotten = given});
}

std::future<uint64_t> LiveTuning::Reset() {
  auto promise = std::make_shared<std::promise<uint64_t>>();
  std::future<uint64_t> future = promise->get_future();
  Post({.reset = std::move(promise)});
  return future;
}

void LiveTuning::Post(Event event) {
  std::lock_guard lock(mutex_);
  unproposed_ += Unproposed(event.measured);
  inbox_.push_back(std::move(event));
  if (scheduled_) return;
  scheduled_ = true;
  boost::asio::post(*parts_.pool, [self = shared_from_this()] { self->Run(); });
}

// One round, so that tunings take turns on the pool.
void LiveTuning::Run() {
  LetOthersRun();
  std::vector<Event> events;
  {
    std::lock_guard lock(mutex_);
    events.swap(inbox_);
  }
  for (const Event& event : events) Handle(event);
  if (!events.empty()) Follow();
  const bool more = MakeProposal();
  std::lock_guard lock(mutex_);
  for (const Event& event : events) unproposed_ -= Unproposed(event.measured);
  if (inbox_.empty() && !more) {
    scheduled_ = false;
    return;
  }
  boost::asio::post(*parts_.pool, [self = shared_from_this()] { self->Run(); });
}

void LiveTuning::Handle(const Event& event) {
  TuningSearch& search = *parts_.search;
  for (const TuningMeasurement& measurement : event.measured) search.Observe(measurement);
  for (const uint64_t candidate : event.forgotten) search.Forget(candidate);
  if (!event.measured.empty() || !event.forgotten.empty()) dry_ = false;
  if (event.reset) {
    search.Reset();
    reset_ = true;
    parts_.drifts_before = 0;
    desk_.ForgetCost();
    dry_ = false;
    Follow();
    event.reset->set_value(search.state().generation);
  }
}

void LiveTuning::FollowIfChanged() {
  const TuningState& state = parts_.search->state();
  if (state.phase != known_.phase || state.best != known_.best || state.value != known_.value) Follow();
}

void LiveTuning::Follow() {
  const TuningState& state = parts_.search->state();
  if (state.generation != known_.generation) {
    generations_.emplace_back(last_candidate_ + 1, state.generation);
    if (generations_.size() > 100) generations_.erase(generations_.begin());
    parts_.evaluations_before = 0;
    points_ = 0;
    new_points_.clear();
  }
  if (state.value > 0 &&
      (state.best != known_.best || state.generation != known_.generation || points_ == 0)) {
    const TuningConvergenceRecord point{static_cast<int64_t>(parts_.evaluations_before + state.evaluations),
                                        EncodePoint(state.best), state.value};
    if (points_ < options_.convergence_points) {
      new_points_.push_back(point);
      ++points_;
    }
  }
  known_ = state;
  Publish();
  // Programs are told last: what they know is on its way to the store, whatever becomes of the server.
  for (const uint64_t candidate : desk_.Follow(state)) parts_.search->Forget(candidate);
}

void LiveTuning::Publish() {
  const TuningState& state = known_;
  auto published = std::make_shared<PublishedTuning>();
  published->state = state;
  published->state.evaluations += parts_.evaluations_before;
  published->state.drifts += parts_.drifts_before;
  if (state.provenance == v1::NEAR || state.provenance == v1::OTHER_DEVICE)
    published->provenance_tuning = parts_.provenance_tuning;
  published->configurations = parts_.search->configurations();
  published->generations = generations_;
  TuningProgressUpdate update;
  update.tuning = parts_.number;
  update.progress = {.generation = static_cast<int64_t>(state.generation),
                     .best = EncodePoint(state.best),
                     .best_value = state.value,
                     .best_relative_error = std::isfinite(state.relative_error) ? state.relative_error : 0,
                     .phase = v1::TuningPhase_Name(state.phase),
                     .provenance = v1::Provenance_Name(state.provenance),
                     .provenance_tuning = published->provenance_tuning,
                     .drifts = static_cast<int64_t>(published->state.drifts),
                     .evaluations = static_cast<int64_t>(published->state.evaluations)};
  update.convergence = std::exchange(new_points_, {});
  update.reset = std::exchange(reset_, false);
  {
    std::lock_guard lock(mutex_);
    published_ = std::move(published);
  }
  parts_.store(std::move(update));
}

bool LiveTuning::MakeProposal() {
  const ProposalDesk::Need need = desk_.need();
  if (dry_ || need.programs == 0 || parts_.search->configurations() >= options_.configurations) return false;
  // One for each program lies ready, and more where they are many and may all come while a model is fitted.
  const size_t enough = std::min(2 * need.programs - 1, kMostReady);
  if (need.ready >= need.waiting + enough) return false;
  const bool hurry = need.ready + 1 < need.waiting + need.programs;
  std::optional<TuningCandidate> candidate =
      hurry ? parts_.search->ProposeQuickly() : parts_.search->Propose();
  // The search may find in proposing that nothing better is expected.
  FollowIfChanged();
  if (!candidate) {
    dry_ = true;
    return false;
  }
  last_candidate_ = std::max(last_candidate_, candidate->id);
  desk_.Add(*std::move(candidate));
  return true;
}

}  // namespace fusion
