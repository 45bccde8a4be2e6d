#include "server/tuner/live_tuning.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cmath>
#include <optional>

#include "server/tuner/declared_section.h"

namespace fusion {
namespace {

constexpr size_t kMostAhead = 16;
// Programs need the value to judge what a run cost, not its last digits.
constexpr double kValueChange = 0.02;

}  // namespace

uint64_t PublishedTuning::GenerationOf(uint64_t candidate) const {
  uint64_t generation = generations.front().second;
  for (const auto& [first, of] : generations)
    if (first <= candidate) generation = of;
  return generation;
}

LiveTuning::LiveTuning(Parts parts, const LiveTuningOptions& options)
    : options_(options), parts_(std::move(parts)), space_(&parts_.search->space()), points_(parts_.convergence_points) {
  last_candidate_ = parts_.first_candidate - 1;
  known_ = parts_.search->state();
  generations_ = {{parts_.first_candidate, known_.generation}};
  Publish();
}

std::shared_ptr<const PublishedTuning> LiveTuning::published() const {
  std::lock_guard lock(mutex_);
  return published_;
}

void LiveTuning::Join(const TuningMember& member, std::shared_ptr<ProgramOutbox> outbox) {
  Post({.kind = Event::Kind::kJoin, .member = member, .outbox = std::move(outbox)});
}

void LiveTuning::Leave(const TuningMember& member) { Post({.kind = Event::Kind::kLeave, .member = member}); }

void LiveTuning::SetDemand(const TuningMember& member, uint32_t wanted) {
  Post({.kind = Event::Kind::kDemand, .member = member, .wanted = wanted});
}

void LiveTuning::Report(const TuningMember& member, std::vector<TuningMeasurement> measured, std::vector<uint64_t> done) {
  Post({.kind = Event::Kind::kReport, .member = member, .measured = std::move(measured), .done = std::move(done)});
}

std::future<uint64_t> LiveTuning::Reset() {
  auto promise = std::make_shared<std::promise<uint64_t>>();
  std::future<uint64_t> future = promise->get_future();
  Post({.kind = Event::Kind::kReset, .promise = std::move(promise)});
  return future;
}

void LiveTuning::Settle() {
  auto promise = std::make_shared<std::promise<uint64_t>>();
  std::future<uint64_t> future = promise->get_future();
  Post({.kind = Event::Kind::kSettle, .promise = std::move(promise)});
  future.wait();
}

void LiveTuning::Post(Event event) {
  std::lock_guard lock(mutex_);
  inbox_.push_back(std::move(event));
  if (scheduled_) return;
  scheduled_ = true;
  boost::asio::post(*parts_.pool, [self = shared_from_this()] { self->Run(); });
}

// One round, so that tunings take turns on the pool.
void LiveTuning::Run() {
  std::vector<Event> events;
  {
    std::lock_guard lock(mutex_);
    events.swap(inbox_);
  }
  for (Event& event : events) Handle(event);
  if (!events.empty()) {
    Follow();
    Distribute();
  }
  const bool more = MakeProposal();
  // The search may find in proposing that nothing better is expected.
  if (const TuningState& state = parts_.search->state();
      state.phase != known_.phase || state.best != known_.best || state.value != known_.value) {
    Follow();
    Distribute();
  } else if (more) {
    Distribute();
  }
  if (!more)
    for (const auto& promise : std::exchange(settling_, {})) promise->set_value(0);
  std::lock_guard lock(mutex_);
  if (inbox_.empty() && !more) {
    scheduled_ = false;
    return;
  }
  boost::asio::post(*parts_.pool, [self = shared_from_this()] { self->Run(); });
}

void LiveTuning::Handle(Event& event) {
  TuningSearch& search = *parts_.search;
  switch (event.kind) {
    case Event::Kind::kJoin:
      members_[event.member].outbox = std::move(event.outbox);
      break;
    case Event::Kind::kLeave: {
      auto member = members_.extract(event.member);
      if (member.empty()) break;
      for (const uint64_t candidate : member.mapped().outstanding) search.Forget(candidate);
      dry_ = false;
      break;
    }
    case Event::Kind::kDemand:
      if (auto found = members_.find(event.member); found != members_.end()) found->second.wanted = event.wanted;
      break;
    case Event::Kind::kReport: {
      auto found = members_.find(event.member);
      for (const TuningMeasurement& measurement : event.measured) {
        search.Observe(measurement);
        if (measurement.proposal != 0 && found != members_.end()) found->second.outstanding.erase(measurement.proposal);
      }
      if (found != members_.end())
        for (const uint64_t candidate : event.done) found->second.outstanding.erase(candidate);
      dry_ = false;
      break;
    }
    case Event::Kind::kReset:
      search.Reset();
      reset_ = true;
      parts_.drifts_before = 0;
      Follow();
      event.promise->set_value(search.state().generation);
      dry_ = false;
      break;
    case Event::Kind::kSettle:
      settling_.push_back(std::move(event.promise));
      break;
  }
}

// They are of an older generation, or nothing better is expected.
void LiveTuning::ForgetProposals() {
  for (const TuningCandidate& candidate : ahead_) parts_.search->Forget(candidate.id);
  ahead_.clear();
}

void LiveTuning::Follow() {
  const TuningState& state = parts_.search->state();
  if (state.generation != known_.generation) {
    ForgetProposals();
    for (auto& [key, member] : members_) {
      for (const uint64_t candidate : member.outstanding) parts_.search->Forget(candidate);
      member.outstanding.clear();
    }
    generations_.emplace_back(last_candidate_ + 1, state.generation);
    if (generations_.size() > 100) generations_.erase(generations_.begin());
    parts_.evaluations_before = 0;
    points_ = 0;
    new_points_.clear();
  }
  if (state.phase == v1::CONVERGED) ForgetProposals();
  if (state.value > 0 && (state.best != known_.best || state.generation != known_.generation || points_ == 0)) {
    const TuningConvergenceRecord point{static_cast<int64_t>(parts_.evaluations_before + state.evaluations),
                                        EncodePoint(state.best), state.value};
    if (points_ < options_.convergence_points) {
      new_points_.push_back(point);
      ++points_;
    }
  }
  known_ = state;
  Publish();
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

size_t LiveTuning::UnmetDemand() const {
  size_t unmet = 0;
  for (const auto& [key, member] : members_)
    unmet += member.wanted > member.outstanding.size() ? member.wanted - member.outstanding.size() : 0;
  return unmet;
}

bool LiveTuning::MakeProposal() {
  size_t wanting = 0;
  for (const auto& [key, member] : members_) wanting += member.wanted > 0 ? 1 : 0;
  // One for each program lies ready, so that whoever reports need not wait for the search.
  if (dry_ || wanting == 0 || ahead_.size() >= UnmetDemand() + std::min(wanting, kMostAhead)) return false;
  if (parts_.search->configurations() >= options_.configurations) return false;
  std::optional<TuningCandidate> candidate = parts_.search->Propose();
  if (!candidate) {
    dry_ = true;
    return false;
  }
  last_candidate_ = std::max(last_candidate_, candidate->id);
  ahead_.push_back(*std::move(candidate));
  return true;
}

void LiveTuning::Distribute() {
  // In turns, so that few proposals go to as many programs as possible.
  std::map<TuningMember, std::vector<TuningCandidate>> given;
  for (bool any = true; any && !ahead_.empty();) {
    any = false;
    for (auto& [key, member] : members_) {
      if (ahead_.empty()) break;
      if (member.outstanding.size() >= member.wanted) continue;
      member.outstanding.insert(ahead_.front().id);
      given[key].push_back(std::move(ahead_.front()));
      ahead_.pop_front();
      any = true;
    }
  }
  for (auto& [key, member] : members_) {
    const bool changed =
        !member.told || member.generation != known_.generation || member.phase != known_.phase ||
        member.provenance != known_.provenance || member.best != known_.best ||
        std::fabs(member.value - known_.value) > kValueChange * std::fabs(known_.value);
    auto proposals = given.find(key);
    if (!changed && proposals == given.end()) continue;
    Tell(key, member, proposals == given.end() ? std::vector<TuningCandidate>() : std::move(proposals->second));
  }
}

void LiveTuning::Tell(const TuningMember& key, Member& member, std::vector<TuningCandidate> proposals) {
  member.told = true;
  member.generation = known_.generation;
  member.best = known_.best;
  member.value = known_.value;
  member.phase = known_.phase;
  member.provenance = known_.provenance;
  v1::TuningChoice choice;
  choice.set_section(key.section);
  choice.set_generation(known_.generation);
  choice.mutable_best()->mutable_values()->Add(known_.best.begin(), known_.best.end());
  choice.set_expected_value(known_.value);
  choice.set_phase(known_.phase);
  choice.set_provenance(known_.provenance);
  if (known_.provenance == v1::NEAR || known_.provenance == v1::OTHER_DEVICE)
    choice.set_provenance_tuning(parts_.provenance_tuning);
  choice.set_exploration_share(options_.exploration_share);
  for (const TuningCandidate& candidate : proposals) {
    v1::TuningProposal* proposal = choice.add_proposals();
    proposal->set_id(candidate.id);
    proposal->mutable_configuration()->mutable_values()->Add(candidate.point.begin(), candidate.point.end());
  }
  if (parts_.metrics != nullptr && !proposals.empty())
    parts_.metrics->proposals->Add(static_cast<double>(proposals.size()));
  member.outbox->AddChoice(std::move(choice));
}

}  // namespace fusion
