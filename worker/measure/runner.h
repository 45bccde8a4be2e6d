// The runner's side of the protocol of proto/fusion/v1/runner.proto: serves requests on a pipe until it
// closes. Code of candidates runs in this process; everything that it can break dies with it.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "fusion/v1/runner.pb.h"
#include "worker/build/builder.h"
#include "worker/measure/activity.h"
#include "worker/measure/execution_backend.h"
#include "worker/measure/phase_times.h"
#include "worker/measure/session_data.h"

namespace fusion {

class Runner {
 public:
  Runner(int input, int output, ActivityPage* activity)
      : input_(input), output_(output), activity_(activity) {}

  // Cancelled when the parent closes the pipe. Aborted after a fault of the device, which has been reported:
  // the process must end.
  absl::Status Serve();

 private:
  // Keeps one backend for every device that was asked for.
  absl::StatusOr<ExecutionBackend*> BackendOf(const std::string& uuid);
  absl::Status Describe(const v1::DescribeRequest& request);
  absl::Status Probe(const v1::ProbeRequest& request);
  absl::Status Time(const v1::TimeRequest& request);
  absl::Status Build(const v1::BuildTask& task);
  absl::Status Open(const v1::OpenRequest& request);
  // Reports an error: as a fault when it is Aborted, which it then returns, else as a failure of the request.
  absl::Status Report(const absl::Status& error);

  const int input_;
  const int output_;
  ActivityPage* const activity_;
  std::map<std::string, std::unique_ptr<ExecutionBackend>> backends_;
  std::map<v1::Target, std::unique_ptr<Builder>> builders_;
  PhaseTimes phases_;  // of the timing in progress
  // The data of the last session and its key: destroyed before the backends.
  std::string session_key_;
  std::unique_ptr<SessionData> session_;
};

}  // namespace fusion
