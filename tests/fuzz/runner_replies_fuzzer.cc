// Any bytes as what a runner writes to its worker while it times: a task with an unfused program and three
// more. The first byte says what a runner that has died was doing; what comes after its end is another
// runner's.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/sandbox/message_pipe.h"
#include "tests/fuzz/message_input.h"
#include "worker/measure/time_remainder.h"

namespace fusion {
namespace {

constexpr int kPrograms = 3;
constexpr uint32_t kMostReplyBytes = 8 << 10;
constexpr size_t kPipeBytes = 60 << 10;  // that a pipe takes before anybody reads

v1::Program Named(const std::string& name) {
  v1::Program program;
  program.set_name(name);
  program.add_launches()->set_binary("sha256:" + name);
  return program;
}

v1::TimeTask Task() {
  v1::TimeTask task;
  *task.mutable_session()->mutable_unfused() = Named("unfused");
  for (int i = 0; i < kPrograms; ++i) *task.add_programs() = Named("candidate " + std::to_string(i));
  return task;
}

// As RunnerProcess::Call reads: replies before the last go to the remainder. Null: the runner is gone.
absl::StatusOr<v1::RunnerReply> Call(int pipe, TimeRemainder& remainder) {
  v1::RunnerReply reply;
  for (int progress = 0; progress <= 2 * (kPrograms + 2); ++progress) {
    absl::Status read = ReadMessage(pipe, &reply, nullptr, kMostReplyBytes);
    Require(read.ok() || absl::IsCancelled(read) || absl::IsDataLoss(read), "an error of another kind");
    if (!read.ok()) return read;
    if (!reply.has_finished() && !reply.has_sampled()) return reply;
    if (reply.has_sampled()) continue;
    v1::ProgramMeasurement* known = remainder.Measurement(reply.finished().program());
    if (known != nullptr) *known = reply.finished().measurement();
  }
  return absl::DataLossError("more replies than there is to tell");
}

void Time(int pipe, int culprit) {
  const v1::TimeTask task = Task();
  v1::TimeResult result;
  TimeRemainder remainder(task, &result);
  const auto binary = [](const std::string& digest) -> absl::StatusOr<std::string> { return digest; };
  int rounds = 0;
  while (!remainder.empty()) {
    Require(++rounds <= kPrograms + 1, "a round ended neither the task nor a program");
    const absl::StatusOr<v1::RunnerRequest> request = remainder.Request(binary, 0);
    Require(request.ok(), "there is no request");
    Require(request->time().task().programs_size() <= kPrograms, "a request has more programs than the task");
    const absl::StatusOr<v1::RunnerReply> reply = Call(pipe, remainder);
    if (reply.ok()) {
      if (reply->has_failure() || reply->has_fault())
        remainder.Fail(v1::LAUNCH_ERROR, reply->failure());
      else
        remainder.Accept(reply->timed());
      break;
    }
    v1::ProgramMeasurement* guilty = remainder.Measurement(culprit % (kPrograms + 2) - 1);
    if (guilty == nullptr) {
      remainder.Fail(v1::FAULT, "preparing the session");
      break;
    }
    if (guilty->outcome() == v1::OUTCOME_UNSPECIFIED) guilty->set_outcome(v1::FAULT);
    remainder.DropDecided();
  }
  Require(result.programs_size() == kPrograms, "the result has other programs than the task");
  Require(result.SerializeAsString().size() < (kPrograms + 2) * (kMostReplyBytes + 64),
          "a result larger than all that was said");
}

}  // namespace
}  // namespace fusion

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fusion;
  if (size == 0) return 0;
  SilenceProtobuf();
  int ends[2];
  Require(pipe(ends) == 0, "no pipe");
  const size_t bytes = std::min(size - 1, kPipeBytes);
  Require(write(ends[1], data + 1, bytes) == static_cast<ssize_t>(bytes), "the pipe is full");
  close(ends[1]);
  Time(ends[0], data[0]);
  close(ends[0]);
  return 0;
}
