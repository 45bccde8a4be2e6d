// The runner's side of the protocol of proto/fusion/v1/runner.proto: serves requests on a pipe until it
// closes. Code of candidates runs in this process; everything that it can break dies with it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fusion/v1/runner.pb.h"
#include "worker/build/builder.h"
#include "worker/measure/activity.h"
#include "worker/measure/execution_backend.h"
#include "worker/measure/phase_times.h"
#include "worker/measure/session_data.h"

namespace fusion {

// The devices of this machine as a runner finds them. Tests have others.
struct RunnerDevices {
  std::function<absl::StatusOr<std::vector<std::string>>()> cuda_uuids;  // of CUDA devices
  // Returns what is known of a CUDA device without using it.
  std::function<absl::StatusOr<v1::DeviceDescription>(const std::string& uuid)> outline;
  std::function<absl::StatusOr<std::unique_ptr<ExecutionBackend>>(const std::string& uuid)> open;

  static RunnerDevices OfThisMachine();
};

class Runner {
 public:
  Runner(int input, int output, ActivityPage* activity,
         RunnerDevices devices = RunnerDevices::OfThisMachine())
      : input_(input), output_(output), activity_(activity), devices_(std::move(devices)) {}

  // Returns Cancelled when the parent closes the pipe, Aborted after a fault of the device, which has been
  // reported: the process must end.
  absl::Status Serve();

 private:
  // Keeps one backend for every device that was asked for.
  absl::StatusOr<ExecutionBackend*> BackendOf(const std::string& uuid);
  absl::Status Describe(const v1::DescribeRequest& request);
  // Appends the device, as one that does not work if it is a CUDA device that cannot be described.
  absl::Status DescribeDevice(const std::string& uuid, bool without_use, v1::DescribeReply* described);
  absl::Status Probe(const v1::ProbeRequest& request);
  absl::Status Time(const v1::TimeRequest& request);
  // Reports that nothing was measured because a binary arrived damaged, which is this machine's fault.
  absl::Status NotTheirCode(const v1::TimeTask& task, const absl::Status& damage);
  absl::Status Build(const v1::BuildTask& task);
  absl::Status Open(const v1::OpenRequest& request);
  // Reports an error: as a fault when it is Aborted, which it then returns, else as a failure of the request.
  absl::Status Report(const absl::Status& error);

  const int input_;
  const int output_;
  ActivityPage* const activity_;
  const RunnerDevices devices_;
  std::map<std::string, std::unique_ptr<ExecutionBackend>> backends_;
  std::map<v1::Target, std::unique_ptr<Builder>> builders_;
  PhaseTimes phases_;  // of the timing in progress
  // The data of the last session and its key: destroyed before the backends.
  std::string session_key_;
  std::unique_ptr<SessionData> session_;
};

}  // namespace fusion
