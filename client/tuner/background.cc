#include "client/tuner/background.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/tuner/clock.h"
#include "client/tuner/signals_blocked.h"
#include "client/tuner/tuner.h"

namespace fusion::tuning {
namespace {

// Between two looks at threads that report all the time.
constexpr uint64_t kRest = 1'000'000;
// Where they fill a quarter of a ring in a rest.
constexpr uint64_t kShortRest = 100'000;
// Between batches without proposals, which nothing waits for.
constexpr uint64_t kBetweenBatches = 50'000'000;
// Batches on the way while proposals are reported: one that is being stored, one that is next.
constexpr size_t kBatchesOfProposals = 2;
constexpr uint64_t kDemandWindow = 20'000'000;
constexpr uint32_t kMostWanted = 64;
// Where few may be tried: one that is run and one for the next.
constexpr uint32_t kWantedWhenLimited = 2;
constexpr size_t kMostOutstanding = 1024;
// Without an event the thread looks around that rarely.
constexpr uint64_t kLongestSleep = 10'000'000'000;

std::vector<double> PointOf(const v1::Configuration& configuration) {
  return {configuration.values().begin(), configuration.values().end()};
}

}  // namespace

Background::Background(Tuner& tuner, TuneDialer dial, const std::string& server)
    : tuner_(tuner),
      exchange_({.dial = std::move(dial),
                 .server = server,
                 .wake = [this] { Wake(); },
                 .notice = [this](const std::string& line) { tuner_.Notice(line); },
                 .answer = [this](const v1::TuneResponse& response) { Answer(response); }},
                outbox_) {
  sem_init(&wakings_, 0, 0);
}

Background::~Background() {
  Stop();
  sem_destroy(&wakings_);
}

void Background::Start() {
  const SignalsBlocked blocked;  // those of gRPC inherit it from ours
  thread_ = std::thread([this] { Loop(); });
}

void Background::Stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  Wake();
  thread_.join();
}

void Background::Loop() {
  uint64_t flush_seen = 0;
  uint64_t flush_target = 0;
  bool flushing = false;
  while (!stopping_) {
    const uint64_t now = NowNanoseconds();
    // A flush waits for samples that were pushed before it was asked for, so this is read before the rings.
    const uint64_t flush = tuner_.flush_requested();
    MeetNewSections(now);
    channels_ = tuner_.ChannelsNow();
    const bool drained = Drain(now);
    RetireEndedThreads();
    if (flush > flush_seen) {
      flush_seen = flush;
      seal_now_ = true;
    }
    exchange_.Step(now);
    if (SealTime(now) <= now && outbox_.Seal()) last_seal_ = now;
    if (seal_now_ && !outbox_.has_reports()) {
      seal_now_ = false;
      flushing = true;
      flush_target = outbox_.last_sequence();
    }
    exchange_.Step(now);
    Publish();  // before who waits for a flush looks at the counters
    if (flushing && outbox_.Stored(flush_target)) {
      flushing = false;
      tuner_.Flushed(flush_seen);
    }
    Sleep(drained, now);
  }
  exchange_.Close();
}

void Background::Publish() {
  acknowledged_.store(exchange_.acknowledged_runs(), std::memory_order_relaxed);
  refused_.store(exchange_.refused_runs(), std::memory_order_relaxed);
  dropped_.store(discarded_ + outbox_.dropped_runs(), std::memory_order_relaxed);
  connections_.store(exchange_.connections(), std::memory_order_relaxed);
  connected_.store(exchange_.ready(), std::memory_order_relaxed);
  // A thread that ends the tuner does not wait for a server that is not there.
  if (unreachable_.exchange(exchange_.unreachable(), std::memory_order_relaxed) != exchange_.unreachable())
    tuner_.Flushed(0);
}

void Background::MeetNewSections(uint64_t now) {
  for (Section* section : tuner_.SectionsFrom(traffic_known_)) Meet(*section, now);
}

void Background::Meet(Section& section, uint64_t now) {
  ++traffic_known_;
  if (traffic_.size() < section.id) traffic_.resize(section.id);
  auto traffic = std::make_unique<Traffic>();
  traffic->section = &section;
  traffic->window_start = now;
  traffic_[section.id - 1] = std::move(traffic);
  v1::DeclareSection declare;
  declare.set_section(section.id);
  *declare.mutable_declaration() = section.declaration;
  exchange_.Declare(declare);
}

bool Background::Drain(uint64_t now) {
  size_t drained = 0;
  rest_ = kRest;
  for (Channel* channel : channels_) {
    const size_t count = channel->ring.Drain([&](const Sample& sample) { Take(*channel, sample); });
    if (count > ReportRing::kCapacity / 4) rest_ = kShortRest;
    drained += count;
  }
  for (const std::unique_ptr<Traffic>& traffic : traffic_) {
    if (!traffic) continue;
    if (drained > 0) Offer(*traffic);
    UpdateDemand(*traffic, now);
  }
  return drained > 0;
}

void Background::Take(const Channel& channel, const Sample& sample) {
  // Declared and run since this round began.
  if (sample.section > traffic_.size() || !traffic_[sample.section - 1]) MeetNewSections(NowNanoseconds());
  Traffic& traffic = *traffic_[sample.section - 1];
  if (sample.kind == Sample::Kind::kReturned) return Return(traffic, sample.proposal);
  ++traffic.window_runs;
  if (traffic.window_threads.empty() || *traffic.window_threads.begin() != &channel)
    traffic.window_threads.insert(&channel);
  const bool failed = sample.kind == Sample::Kind::kFailure;
  if (sample.proposal == 0) {
    if (traffic.refused)
      ++discarded_;
    else
      outbox_.AddChoice(sample.section, sample.configuration, failed, sample.value);
    return;
  }
  const auto proposal = traffic.outstanding.extract(sample.proposal);
  if (traffic.refused || proposal.empty())
    ++discarded_;
  else
    outbox_.AddProposal(sample.section, sample.proposal, proposal.mapped().point, failed, sample.value,
                        sample.excess);
}

void Background::RetireEndedThreads() {
  std::erase_if(channels_, [this](Channel* channel) {
    if (!channel->ended.load(std::memory_order_acquire)) return false;
    // The last samples of the thread came before `ended`.
    channel->ring.Drain([&](const Sample& sample) { Take(*channel, sample); });
    for (const std::unique_ptr<Traffic>& traffic : traffic_)
      if (traffic) traffic->window_threads.erase(channel);
    tuner_.Retire(channel, [&](Runner& runner) {
      if (runner.state == Runner::State::kIdle || runner.assignment.proposal == 0) return;
      if (runner.assignment.limited) runner.section->budget().Cancelled();
      Return(*traffic_[runner.section->id - 1], runner.assignment.proposal);
    });
    return true;
  });
}

void Background::Answer(const v1::TuneResponse& response) {
  const uint32_t id = response.has_declared()  ? response.declared().section()
                      : response.has_refused() ? response.refused().section()
                                               : response.choice().section();
  if (id == 0 || id > traffic_.size() || !traffic_[id - 1]) return;
  if (response.has_declared())
    Declared(*traffic_[id - 1], response.declared());
  else if (response.has_refused())
    Refused(*traffic_[id - 1], response.refused());
  else
    Choose(*traffic_[id - 1], response.choice());
}

void Background::Refused(Traffic& traffic, const v1::ReportRefused& refused) {
  // Why a section is not tuned was said already; of one that is, once is enough.
  if (traffic.refused || std::exchange(traffic.told_refused, true)) return;
  tuner_.Notice(absl::StrCat("section ", traffic.section->name(), ": ", tuner_.settings().server,
                             " does not store what was reported of some runs: ", refused.status().message()));
}

void Background::Declared(Traffic& traffic, const v1::Declared& declared) {
  Section& section = *traffic.section;
  absl::Status status;
  if (declared.status().code() != 0)
    status = absl::Status(static_cast<absl::StatusCode>(declared.status().code()),
                          absl::StrCat("section ", section.name(), ": ", declared.status().message()));
  const bool was_refused = std::exchange(traffic.refused, !status.ok());
  {
    std::lock_guard lock(tuner_.mutex());
    section.SetStatus(status);
    if (traffic.refused && !was_refused) {
      Choice defaults;
      defaults.best = section.Intern(section.space().defaults());
      section.SetChoice(defaults);
    }
  }
  if (traffic.refused) {
    discarded_ += outbox_.Discard(section.id);
    traffic.wanted = 0;
    if (!was_refused)
      tuner_.Notice(
          absl::StrCat(std::string(status.message()), "; it goes on with its defaults, and is not tuned"));
    return;
  }
  // Also on a new stream: the server knows it of no other.
  traffic.wanted = std::max(traffic.wanted, kWantedWhenLimited);
  outbox_.SetDemand(section.id, traffic.wanted);
}

void Background::Choose(Traffic& traffic, const v1::TuningChoice& message) {
  Section& section = *traffic.section;
  if (traffic.refused) return;
  const std::vector<double> best = PointOf(message.best());
  // Nothing is taken from a server that has other parameters in mind.
  if (!section.space().Check(best).ok()) return;
  const double share = tuner_.settings().exploration_share;
  Choice choice;
  choice.generation = message.generation();
  choice.expected = message.expected_value();
  choice.share = share >= 0 ? share : message.exploration_share();
  choice.converged = message.phase() == v1::CONVERGED;
  choice.limited = choice.converged || message.phase() == v1::BOUNDED;

  if (!std::exchange(traffic.chosen, true) && choice.share < 1) {
    const double owed = message.exploration_excess() - choice.share * message.total_value();
    if (owed > 0) section.budget().Owe(owed);
  }
  if (choice.generation != section.choice().generation) {
    // Proposals of before a reset or a drift are not tried any more.
    std::vector<fusion_tuner_value> values(section.space().dimensions());
    uint64_t proposal, generation;
    while (section.proposals().Pop(&proposal, &generation, values.data()))
      traffic.outstanding.erase(proposal);
    for (uint64_t waiting : traffic.waiting) traffic.outstanding.erase(waiting);
    traffic.waiting.clear();
  }
  {
    std::lock_guard lock(tuner_.mutex());
    choice.best = section.Intern(best);
    section.SetChoice(choice);
  }
  for (const v1::TuningProposal& proposal : message.proposals()) {
    std::vector<double> point = PointOf(proposal.configuration());
    if (proposal.id() == 0 || traffic.outstanding.size() >= kMostOutstanding ||
        !section.space().Check(point).ok())
      continue;
    if (traffic.outstanding.try_emplace(proposal.id(), Proposal{choice.generation, std::move(point)}).second)
      traffic.waiting.push_back(proposal.id());
  }
  Offer(traffic);
}

void Background::Offer(Traffic& traffic) {
  if (traffic.waiting.empty()) return;
  std::vector<fusion_tuner_value> values(traffic.section->space().dimensions());
  while (!traffic.waiting.empty()) {
    const uint64_t number = traffic.waiting.front();
    const Proposal& proposal = traffic.outstanding.at(number);
    traffic.section->ValuesOf(proposal.point, values.data());
    if (!traffic.section->proposals().Push(number, proposal.generation, values.data())) return;
    traffic.waiting.pop_front();
  }
}

void Background::Return(Traffic& traffic, uint64_t number) {
  auto found = traffic.outstanding.find(number);
  if (found == traffic.outstanding.end()) return;
  if (found->second.generation < traffic.section->choice().generation) {
    traffic.outstanding.erase(found);
    return;
  }
  traffic.waiting.push_front(number);
  Offer(traffic);
}

void Background::UpdateDemand(Traffic& traffic, uint64_t now) {
  if (traffic.wanted == 0 || now - traffic.window_start < kDemandWindow || traffic.window_runs == 0) return;
  const double rate =
      static_cast<double>(traffic.window_runs) / static_cast<double>(now - traffic.window_start);
  const double expected = rate * static_cast<double>(exchange_.round_trip_nanoseconds());
  // Every thread holds one while it runs.
  const double wanted = std::ceil(expected) + static_cast<double>(traffic.window_threads.size());
  const Choice& choice = traffic.section->choice();
  const bool limited = choice.limited && choice.share < 1;
  const uint32_t demand =
      limited ? kWantedWhenLimited : static_cast<uint32_t>(std::min<double>(wanted, kMostWanted));
  // Not for every small change.
  if (demand > traffic.wanted || 2 * demand < traffic.wanted) {
    traffic.wanted = demand;
    outbox_.SetDemand(traffic.section->id, demand);
  }
  traffic.window_start = now;
  traffic.window_runs = 0;
  traffic.window_threads.clear();
}

uint64_t Background::SealTime(uint64_t now) const {
  // Until then more is joined with what is collected. An answer of the server wakes the thread.
  if (!exchange_.ready() || outbox_.waiting() >= Outbox::kMostBatches) return kNever;
  if (outbox_.has_demands() || (seal_now_ && outbox_.has_reports())) return now;
  if (outbox_.has_proposals()) return outbox_.waiting() < kBatchesOfProposals ? now : kNever;
  return outbox_.has_reports() ? last_seal_ + kBetweenBatches : kNever;
}

void Background::Sleep(bool drained, uint64_t now) {
  uint64_t until = std::min({exchange_.next_step(), SealTime(now), now + kLongestSleep});
  if (drained) {
    until = std::min(until, now + rest_);
  } else {
    asleep_.store(true, std::memory_order_seq_cst);
    // A thread that pushed before did not see the flag.
    for (Channel* channel : channels_)
      if (!channel->ring.empty()) until = 0;
  }
  if (until > now) {
    const timespec time{static_cast<time_t>(until / 1'000'000'000), static_cast<long>(until % 1'000'000'000)};
    sem_clockwait(&wakings_, CLOCK_MONOTONIC, &time);
    while (sem_trywait(&wakings_) == 0) {
    }
  }
  asleep_.store(false, std::memory_order_relaxed);
}

}  // namespace fusion::tuning
