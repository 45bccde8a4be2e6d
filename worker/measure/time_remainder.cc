#include "worker/measure/time_remainder.h"

#include <numeric>
#include <set>

#include "base/status_macros.h"
#include "worker/measure/activity.h"

namespace fusion {
namespace {

void AddDigests(const v1::Program& program, std::set<std::string>* digests) {
  for (const v1::Launch& launch : program.launches()) digests->insert(launch.binary());
}

}  // namespace

TimeRemainder::TimeRemainder(const v1::TimeTask& task, v1::TimeResult* result)
    : task_(task), result_(result) {
  positions_.resize(task.programs_size());
  std::iota(positions_.begin(), positions_.end(), 0);
  unfused_ = task.session().unfused().launches_size() > 0;
  if (unfused_) result_->mutable_unfused()->set_name(task.session().unfused().name());
  for (const v1::Program& program : task.programs()) result_->add_programs()->set_name(program.name());
}

absl::StatusOr<v1::RunnerRequest> TimeRemainder::Request(const BinaryGetter& get_binary,
                                                         double copy_bytes_per_second) const {
  v1::RunnerRequest request;
  v1::TimeRequest* time = request.mutable_time();
  time->set_copy_bytes_per_second(copy_bytes_per_second);
  v1::TimeTask* task = time->mutable_task();
  *task->mutable_session() = task_.session();
  if (!unfused_) task->mutable_session()->clear_unfused();
  *task->mutable_method() = task_.method();
  task->set_device_uuid(task_.device_uuid());
  std::set<std::string> digests;
  AddDigests(task->session().reference(), &digests);
  AddDigests(task->session().unfused(), &digests);
  for (const v1::Buffer& input : task->session().inputs())
    if (input.values().kind() == v1::InputValues::FILE) digests.insert(input.values().blob());
  for (int position : positions_) {
    *task->add_programs() = task_.programs(position);
    AddDigests(task_.programs(position), &digests);
  }
  for (const std::string& digest : digests) {
    v1::RunnerBinary* binary = time->add_binaries();
    binary->set_digest(digest);
    FUSION_ASSIGN_OR_RETURN(*binary->mutable_content(), get_binary(digest));
  }
  return request;
}

v1::ProgramMeasurement* TimeRemainder::Measurement(int number) const {
  if (number == kUnfusedProgram) return unfused_ ? result_->mutable_unfused() : nullptr;
  if (number < 0 || number >= static_cast<int>(positions_.size())) return nullptr;
  return result_->mutable_programs(positions_[number]);
}

void TimeRemainder::DropDecided() {
  if (unfused_ && result_->unfused().outcome() != v1::OUTCOME_UNSPECIFIED) unfused_ = false;
  std::erase_if(positions_, [&](int i) { return result_->programs(i).outcome() != v1::OUTCOME_UNSPECIFIED; });
}

void TimeRemainder::Accept(const v1::TimeResult& timed) const {
  if (unfused_) *result_->mutable_unfused() = timed.unfused();
  for (int i = 0; i < timed.programs_size() && i < static_cast<int>(positions_.size()); ++i)
    *result_->mutable_programs(positions_[i]) = timed.programs(i);
  *result_->mutable_conditions() = timed.conditions();
  result_->set_failure(timed.failure());
}

void TimeRemainder::Fail(v1::Outcome outcome, const std::string& message) const {
  if (unfused_) {
    result_->mutable_unfused()->set_outcome(outcome);
    result_->mutable_unfused()->set_message(message);
  }
  for (int position : positions_) {
    result_->mutable_programs(position)->set_outcome(outcome);
    result_->mutable_programs(position)->set_message(message);
  }
  result_->set_failure(message);
}

}  // namespace fusion
