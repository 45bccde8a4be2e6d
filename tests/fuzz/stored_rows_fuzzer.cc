// Any bytes as what is read back from the database: results and work of tasks, jobs, events, tables of
// routine times, statistics. They are the server's own, unless the file was damaged, came from another
// version or holds what a worker reported. The first byte says which.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "server/dispatch/task_queue.h"
#include "server/jobs/job_messages.h"
#include "server/model/residual.h"
#include "server/model/routine_tables.h"
#include "tests/fuzz/message_input.h"

namespace fusion {
namespace {

void Task(const std::string& bytes) {
  TaskRecord task;
  task.id = "tasks/1";
  task.state = TaskState::kDone;
  task.result = task.payload = bytes;
  const auto typed = [](const absl::Status& status) {
    Require(status.ok() || absl::IsDataLoss(status), "an error of another kind");
  };
  typed(BuildResultOf(task).status());
  typed(TimeResultOf(task).status());
  task.state = TaskState::kFailed;
  Require(BuildResultOf(task).ok(), "a failed build has no outcome");
  typed(TimeResultOf(task).status());
}

void Job(const std::string& bytes) {
  JobRecord job;
  job.id = "jobs/1";
  job.state = JobState::kSucceeded;
  job.target = job.graph_summary = job.result = job.error = bytes;
  Require(ToMessage(job).name() == job.id, "the job has lost its name");
  EventRecord event;
  event.sequence = 7;
  event.event = bytes;
  Require(ToMessage(event).sequence() == 7, "the event has lost its place");
}

void Tables(const v1::RoutineTable& table) {
  RoutineTables tables;
  if (!tables.Add(table).ok()) {
    Require(tables.empty(), "a table that is refused was added");
    return;
  }
  for (const auto& point : table.points())
    for (const double blocks : {0.0, 0.5, 1.0, 1.5, static_cast<double>(point.resident_blocks()), 1e9}) {
      const auto time = tables.Time(table.routine(), point.threads(), point.elements(), blocks);
      Require(!time || !std::isnan(time->seconds), "a time that is no number");
    }
}

void Statistics(v1::ResidualStatistics statistics, v1::Target target) {
  const Residual residual(statistics, target);
  for (const double deviation : {residual.deviation(), residual.graph_deviation()})
    Require(std::isfinite(deviation) && deviation >= 0, "a deviation that is none");
  residual.Explain();
  ResidualObservation observation;
  observation.kernels.resize(1);
  observation.predicted_seconds = {1e-3};
  observation.measured_seconds = 2e-3;
  AddJob({observation, observation}, &statistics);
  const Residual learned(statistics, target);
  Require(std::isfinite(learned.deviation()), "a deviation that is none, of what was learned");
}

}  // namespace
}  // namespace fusion

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fusion;
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  v1::RoutineTable table;
  v1::ResidualStatistics statistics;
  switch (data[0] % 4) {
    case 0:
      Task(bytes);
      break;
    case 1:
      Job(bytes);
      break;
    case 2:
      if (ReadMessage(bytes, &table)) Tables(table);
      break;
    default:
      if (ReadMessage(bytes, &statistics))
        for (const v1::Target target : {v1::HOST, v1::CUDA}) Statistics(statistics, target);
  }
  return 0;
}
