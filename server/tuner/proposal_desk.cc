#include "server/tuner/proposal_desk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace fusion {
namespace {

// Programs need the value to judge what a run cost, not its last digits.
constexpr double kValueChange = 0.02;
constexpr double kGreatest = std::numeric_limits<double>::max();

bool Differs(const TuningState& told, const TuningState& state) {
  return told.generation != state.generation || told.phase != state.phase ||
         told.provenance != state.provenance || told.best != state.best ||
         std::fabs(told.value - state.value) > kValueChange * std::fabs(state.value);
}

}  // namespace

ProposalDesk::ProposalDesk(Parts parts, const TuningState& state, const ExplorationCost& cost)
    : parts_(std::move(parts)), state_(state), cost_(cost) {}

void ProposalDesk::Join(const TuningMember& key, std::shared_ptr<ProgramOutbox> outbox) {
  std::lock_guard lock(mutex_);
  Member& member = members_[key];
  member.outbox = std::move(outbox);
  Tell(key, member, {});
}

std::vector<uint64_t> ProposalDesk::Leave(const TuningMember& key) {
  std::lock_guard lock(mutex_);
  auto member = members_.extract(key);
  if (member.empty()) return {};
  return {member.mapped().outstanding.begin(), member.mapped().outstanding.end()};
}

void ProposalDesk::SetDemand(const TuningMember& key, uint32_t wanted) {
  std::lock_guard lock(mutex_);
  const auto found = members_.find(key);
  if (found == members_.end()) return;
  found->second.wanted = wanted;
  GiveReady(key, found->second);
}

std::vector<uint64_t> ProposalDesk::Done(const TuningMember& key, std::span<const uint64_t> candidates) {
  std::lock_guard lock(mutex_);
  const auto found = members_.find(key);
  if (found == members_.end()) return {};
  std::vector<uint64_t> had;
  for (const uint64_t candidate : candidates)
    if (found->second.outstanding.erase(candidate) > 0) had.push_back(candidate);
  GiveReady(key, found->second);
  return had;
}

void ProposalDesk::AddCost(const ExplorationCost& cost) {
  std::lock_guard lock(mutex_);
  cost_.excess = std::clamp(cost_.excess + cost.excess, -kGreatest, kGreatest);
  cost_.total = std::min(cost_.total + cost.total, kGreatest);
}

void ProposalDesk::ForgetCost() {
  std::lock_guard lock(mutex_);
  cost_ = {};
}

std::vector<uint64_t> ProposalDesk::Follow(const TuningState& state) {
  std::lock_guard lock(mutex_);
  std::vector<uint64_t> dropped;
  const bool anew = state.generation != state_.generation;
  if (anew || state.phase == v1::CONVERGED) {
    for (const TuningCandidate& candidate : ready_) dropped.push_back(candidate.id);
    ready_.clear();
  }
  state_ = state;
  for (auto& [key, member] : members_) {
    if (anew) {
      dropped.insert(dropped.end(), member.outstanding.begin(), member.outstanding.end());
      member.outstanding.clear();
    }
    if (Differs(member.told, state_)) Tell(key, member, {});
  }
  return dropped;
}

void ProposalDesk::Add(TuningCandidate candidate) {
  std::lock_guard lock(mutex_);
  ready_.push_back(std::move(candidate));
  auto first = members_.end();
  for (auto member = members_.begin(); member != members_.end(); ++member)
    if (Wants(member->second) &&
        (first == members_.end() || member->second.last_given < first->second.last_given))
      first = member;
  if (first == members_.end()) return;
  // One: others may wait, too.
  TuningCandidate given = std::move(ready_.front());
  ready_.pop_front();
  first->second.last_given = ++turn_;
  first->second.outstanding.insert(given.id);
  Tell(first->first, first->second, {std::move(given)});
}

ProposalDesk::Need ProposalDesk::need() const {
  std::lock_guard lock(mutex_);
  Need need;
  need.ready = ready_.size();
  for (const auto& [key, member] : members_) {
    need.programs += member.wanted > 0 ? 1 : 0;
    need.waiting += Wants(member) ? member.wanted - member.outstanding.size() : 0;
  }
  return need;
}

void ProposalDesk::GiveReady(const TuningMember& key, Member& member) {
  std::vector<TuningCandidate> given;
  while (!ready_.empty() && Wants(member)) {
    member.outstanding.insert(ready_.front().id);
    given.push_back(std::move(ready_.front()));
    ready_.pop_front();
  }
  if (given.empty()) return;
  member.last_given = ++turn_;
  Tell(key, member, given);
}

void ProposalDesk::Tell(const TuningMember& key, Member& member,
                        const std::vector<TuningCandidate>& proposals) {
  member.told = state_;
  v1::TuningChoice choice;
  choice.set_section(key.section);
  choice.set_generation(state_.generation);
  choice.mutable_best()->mutable_values()->Add(state_.best.begin(), state_.best.end());
  choice.set_expected_value(state_.value);
  choice.set_phase(state_.phase);
  choice.set_provenance(state_.provenance);
  if (state_.provenance == v1::NEAR || state_.provenance == v1::OTHER_DEVICE)
    choice.set_provenance_tuning(parts_.provenance_tuning);
  choice.set_exploration_share(parts_.exploration_share);
  choice.set_exploration_excess(cost_.excess);
  choice.set_total_value(cost_.total);
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
