#include "worker/measure/runner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/sandbox/message_pipe.h"
#include "base/status_macros.h"
#include "worker/measure/cuda_backend.h"
#include "worker/measure/host_backend.h"
#include "worker/measure/timing.h"

namespace fusion {
namespace {

// A result in which every program has the same outcome: nothing could be run.
v1::TimeResult NothingMeasured(const v1::TimeTask& task, v1::Outcome outcome, const std::string& message) {
  v1::TimeResult result;
  auto fill = [&](const v1::Program& program, v1::ProgramMeasurement* measurement) {
    measurement->set_name(program.name());
    measurement->set_outcome(outcome);
    measurement->set_message(message);
  };
  fill(task.session().unfused(), result.mutable_unfused());
  for (const v1::Program& program : task.programs()) fill(program, result.add_programs());
  result.set_failure(message);
  return result;
}

}  // namespace

RunnerDevices RunnerDevices::OfThisMachine() {
  return {.cuda_uuids = CudaDeviceUuids, .outline = CudaDeviceOutline, .open = [](const std::string& uuid) {
            return uuid == HostUuid() ? HostBackend::Open() : CudaBackend::Open(uuid);
          }};
}

absl::Status Runner::Serve() {
  while (true) {
    activity_->Set(Activity::kIdle);
    v1::RunnerRequest request;
    FUSION_RETURN_IF_ERROR(ReadMessage(input_, &request));
    activity_->Set(Activity::kSetUp);
    absl::Status status;
    switch (request.request_case()) {
      case v1::RunnerRequest::kDescribe:
        status = Describe(request.describe());
        break;
      case v1::RunnerRequest::kProbe:
        status = Probe(request.probe());
        break;
      case v1::RunnerRequest::kTime:
        status = Time(request.time());
        break;
      case v1::RunnerRequest::kBuild:
        status = Build(request.build());
        break;
      case v1::RunnerRequest::kOpen:
        status = Open(request.open());
        break;
      case v1::RunnerRequest::REQUEST_NOT_SET:
        status = absl::InvalidArgumentError("an empty request");
    }
    if (!status.ok()) FUSION_RETURN_IF_ERROR(Report(status));
  }
}

absl::Status Runner::Report(const absl::Status& error) {
  // The activity page keeps what was going on: the parent reads it.
  v1::RunnerReply reply;
  if (absl::IsAborted(error)) {
    reply.set_fault(std::string(error.message()));
  } else {
    reply.set_failure(std::string(error.message()));
  }
  FUSION_RETURN_IF_ERROR(WriteMessage(output_, reply));
  return absl::IsAborted(error) ? error : absl::OkStatus();
}

absl::StatusOr<ExecutionBackend*> Runner::BackendOf(const std::string& uuid) {
  std::unique_ptr<ExecutionBackend>& backend = backends_[uuid];
  if (backend == nullptr) {
    FUSION_ASSIGN_OR_RETURN(backend, devices_.open(uuid));
  }
  return backend.get();
}

absl::Status Runner::Describe(const v1::DescribeRequest& request) {
  v1::RunnerReply reply;
  v1::DescribeReply* described = reply.mutable_described();
  if (!request.device_uuid().empty()) {
    FUSION_RETURN_IF_ERROR(DescribeDevice(request.device_uuid(), request.without_use(), described));
    return WriteMessage(output_, reply);
  }
  std::vector<std::string> uuids;
  if (request.target() != v1::HOST) {
    absl::StatusOr<std::vector<std::string>> cuda = devices_.cuda_uuids();
    if (cuda.ok()) uuids = *cuda;
    if (!cuda.ok()) described->add_notes(std::string(cuda.status().message()));
    if (cuda.ok() && cuda->empty()) described->add_notes("the CUDA driver sees no device");
  }
  if (request.target() != v1::CUDA) uuids.push_back(HostUuid());
  for (const std::string& uuid : uuids)
    FUSION_RETURN_IF_ERROR(DescribeDevice(uuid, request.without_use(), described));
  return WriteMessage(output_, reply);
}

absl::Status Runner::DescribeDevice(const std::string& uuid, bool without_use, v1::DescribeReply* described) {
  const bool host = uuid == HostUuid();
  if (!without_use || host) {
    const auto in_use = [&]() -> absl::StatusOr<v1::DeviceDescription> {
      FUSION_ASSIGN_OR_RETURN(ExecutionBackend * backend, BackendOf(uuid));
      return backend->Describe();
    };
    absl::StatusOr<v1::DeviceDescription> device = in_use();
    if (device.ok()) {
      *described->add_devices() = *std::move(device);
      return absl::OkStatus();
    }
    if (host) return device.status();
    // Its memory is not to be there for the next try.
    backends_.erase(uuid);
    v1::DeviceProblem* problem = described->add_problems();
    problem->set_device_uuid(uuid);
    problem->set_reason(std::string(device.status().message()));
  }
  v1::DeviceDescription* device = described->add_devices();
  if (absl::StatusOr<v1::DeviceDescription> outline = devices_.outline(uuid); outline.ok())
    *device = *std::move(outline);
  device->set_target(v1::CUDA);
  device->set_uuid(uuid);
  return absl::OkStatus();
}

absl::Status Runner::Probe(const v1::ProbeRequest& request) {
  FUSION_ASSIGN_OR_RETURN(ExecutionBackend * backend, BackendOf(request.device_uuid()));
  FUSION_RETURN_IF_ERROR(backend->Probe());
  v1::RunnerReply reply;
  reply.mutable_probed();
  return WriteMessage(output_, reply);
}

absl::Status Runner::Open(const v1::OpenRequest& request) {
  if (request.beside_timings()) {
    if (request.device_uuid() != HostUuid())
      FUSION_RETURN_IF_ERROR(CudaBackend::PrepareToOpen(request.device_uuid()));
  } else {
    FUSION_ASSIGN_OR_RETURN(ExecutionBackend * backend, BackendOf(request.device_uuid()));
    FUSION_RETURN_IF_ERROR(backend->Probe());  // loads what every timing uses, too
  }
  v1::RunnerReply reply;
  reply.mutable_opened();
  return WriteMessage(output_, reply);
}

absl::Status Runner::Time(const v1::TimeRequest& request) {
  phases_.Reset();
  const v1::TimeTask& task = request.task();
  phases_.Enter(v1::TIMING_OPEN);
  FUSION_ASSIGN_OR_RETURN(ExecutionBackend * backend, BackendOf(task.device_uuid()));
  phases_.Enter(v1::TIMING_OTHER);
  BinaryMap binaries;
  for (const v1::RunnerBinary& binary : request.binaries()) binaries[binary.digest()] = binary.content();

  v1::RunnerReply reply;
  const std::string key = absl::StrCat(task.device_uuid(), "\n", SessionData::Key(task.session()));
  if (session_ == nullptr || session_key_ != key) {
    session_.reset();  // its memory first
    absl::StatusOr<std::unique_ptr<SessionData>> session =
        SessionData::Create(backend, task.session(), binaries, activity_, &phases_);
    if (absl::IsResourceExhausted(session.status())) {
      *reply.mutable_timed() =
          NothingMeasured(task, v1::EXCEEDS_DEVICE, std::string(session.status().message()));
      return WriteMessage(output_, reply);
    }
    if (absl::IsDataLoss(session.status())) return NotTheirCode(task, session.status());
    FUSION_RETURN_IF_ERROR(session.status());
    session_ = std::move(*session);
    session_key_ = key;
  }
  absl::StatusOr<v1::TimeResult> result = MeasurePrograms(
      backend, session_.get(), task, binaries, request.copy_bytes_per_second(), activity_,
      [&](int number, const v1::ProgramMeasurement& measurement) {
        v1::RunnerReply finished;
        finished.mutable_finished()->set_program(number);
        *finished.mutable_finished()->mutable_measurement() = measurement;
        // A closed pipe shows when the final reply is written.
        WriteMessage(output_, finished).IgnoreError();
      },
      [&] {
        v1::RunnerReply sampled;
        sampled.mutable_sampled();
        WriteMessage(output_, sampled).IgnoreError();
      });
  if (absl::IsDataLoss(result.status())) return NotTheirCode(task, result.status());
  FUSION_RETURN_IF_ERROR(result.status());
  *reply.mutable_timed() = std::move(*result);
  phases_.Enter(v1::TIMING_OTHER);
  for (int phase = 0; phase < PhaseTimes::kPhases; ++phase) {
    if (phases_.seconds()[phase] <= 0) continue;
    v1::PhaseTime* time = reply.add_phases();
    time->set_phase(static_cast<v1::TimingPhase>(phase));
    time->set_seconds(phases_.seconds()[phase]);
  }
  return WriteMessage(output_, reply);
}

absl::Status Runner::NotTheirCode(const v1::TimeTask& task, const absl::Status& damage) {
  v1::RunnerReply reply;
  *reply.mutable_timed() = NothingMeasured(task, v1::WORKER_LOST, std::string(damage.message()));
  return WriteMessage(output_, reply);
}

absl::Status Runner::Build(const v1::BuildTask& task) {
  std::unique_ptr<Builder>& builder = builders_[task.target()];
  if (builder == nullptr) {
    FUSION_ASSIGN_OR_RETURN(builder, MakeBuilder(task.target()));
  }
  BuildOutput output = builder->Build(task);
  v1::RunnerReply reply;
  *reply.mutable_built()->mutable_result() = std::move(output.result);
  reply.mutable_built()->set_binary(std::move(output.binary));
  return WriteMessage(output_, reply);
}

}  // namespace fusion
