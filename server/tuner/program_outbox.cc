#include "server/tuner/program_outbox.h"

#include <algorithm>
#include <utility>

namespace fusion {

void ProgramOutbox::Wake(std::unique_lock<std::mutex> lock) {
  const bool wake = !std::exchange(awake_, true);
  lock.unlock();
  if (wake) wake_();
}

void ProgramOutbox::AddWelcome(uint64_t last_sequence) {
  std::unique_lock lock(mutex_);
  welcome_ = last_sequence;
  Wake(std::move(lock));
}

void ProgramOutbox::AddDeclared(v1::Declared declared) {
  std::unique_lock lock(mutex_);
  const auto same = std::find_if(declared_.begin(), declared_.end(), [&](const v1::Declared& waiting) {
    return waiting.section() == declared.section();
  });
  if (same == declared_.end())
    declared_.push_back(std::move(declared));
  else
    *same = std::move(declared);
  Wake(std::move(lock));
}

void ProgramOutbox::AddChoice(v1::TuningChoice choice) {
  std::unique_lock lock(mutex_);
  auto [found, added] = choices_.try_emplace(choice.section());
  if (added) {
    choice_order_.push_back(choice.section());
    found->second = std::move(choice);
  } else {
    v1::TuningChoice& waiting = found->second;
    if (waiting.generation() == choice.generation()) {
      google::protobuf::RepeatedPtrField<v1::TuningProposal> proposals;
      proposals.Swap(waiting.mutable_proposals());
      proposals.MergeFrom(choice.proposals());
      choice.mutable_proposals()->Swap(&proposals);
    }
    waiting = std::move(choice);
  }
  Wake(std::move(lock));
}

void ProgramOutbox::AddRefused(uint32_t section, const absl::Status& why, uint64_t runs) {
  std::unique_lock lock(mutex_);
  v1::ReportRefused& refused = refused_[section];
  refused.set_section(section);
  refused.mutable_status()->set_code(static_cast<int>(why.code()));
  refused.mutable_status()->set_message(std::string(why.message()));
  refused.set_runs(refused.runs() + runs);
  Wake(std::move(lock));
}

void ProgramOutbox::AddAcknowledged(uint64_t sequence) {
  std::unique_lock lock(mutex_);
  acknowledged_ = std::max(acknowledged_.value_or(0), sequence);
  Wake(std::move(lock));
}

void ProgramOutbox::End(absl::Status status) {
  std::unique_lock lock(mutex_);
  if (!ended_) ended_ = std::move(status);
  awake_ = false;  // whoever waits for a write to end looks anew
  Wake(std::move(lock));
}

std::optional<absl::Status> ProgramOutbox::ended() const {
  std::lock_guard lock(mutex_);
  return ended_;
}

std::optional<v1::TuneResponse> ProgramOutbox::Next() {
  std::lock_guard lock(mutex_);
  v1::TuneResponse response;
  if (welcome_) {
    response.mutable_welcome()->set_last_sequence(*std::exchange(welcome_, std::nullopt));
  } else if (!declared_.empty()) {
    *response.mutable_declared() = std::move(declared_.front());
    declared_.pop_front();
  } else if (!refused_.empty()) {
    *response.mutable_refused() = std::move(refused_.begin()->second);
    refused_.erase(refused_.begin());
  } else if (acknowledged_) {
    response.mutable_acknowledged()->set_sequence(*std::exchange(acknowledged_, std::nullopt));
  } else if (!choice_order_.empty()) {
    auto choice = choices_.extract(choice_order_.front());
    choice_order_.pop_front();
    *response.mutable_choice() = std::move(choice.mapped());
  } else {
    awake_ = false;
    return std::nullopt;
  }
  return response;
}

}  // namespace fusion
