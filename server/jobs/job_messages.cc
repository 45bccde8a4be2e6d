#include "server/jobs/job_messages.h"

#include <chrono>

namespace fusion {

google::protobuf::Timestamp ToMessage(Timestamp time) {
  google::protobuf::Timestamp message;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  message.set_seconds(seconds.time_since_epoch().count());
  message.set_nanos(static_cast<int>(std::chrono::nanoseconds(time - seconds).count()));
  return message;
}

v1::Job ToMessage(const JobRecord& record) {
  v1::Job job;
  job.set_name(record.id);
  job.set_state(static_cast<v1::JobState>(record.state));
  *job.mutable_create_time() = ToMessage(record.created);
  *job.mutable_update_time() = ToMessage(record.updated);
  job.mutable_graph()->ParseFromString(record.graph_summary);
  if (!record.result.empty()) job.mutable_result()->ParseFromString(record.result);
  if (!record.best.empty()) job.mutable_best()->ParseFromString(record.best);
  if (!record.error.empty()) job.mutable_error()->ParseFromString(record.error);
  v1::Target target = v1::TARGET_AUTO;
  if (v1::Target_Parse(record.target, &target)) job.set_target(target);
  job.set_user(record.user);
  job.set_priority(record.priority);
  return job;
}

v1::JobEvent ToMessage(const EventRecord& record) {
  v1::JobEvent event;
  event.ParseFromString(record.event);
  event.set_sequence(record.sequence);
  *event.mutable_time() = ToMessage(record.time);
  return event;
}

}  // namespace fusion
