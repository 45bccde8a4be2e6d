#include "client/tuner/message.h"

#include <string>

#include "client/tuner/fusion_tuner.h"
#include "client/tuner/thread_state.h"

namespace fusion::tuning {

int Fail(const absl::Status& status) {
  ThreadState::Current().message = std::string(status.message());
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kUnauthenticated:
      return static_cast<int>(status.code());
    case absl::StatusCode::kOutOfRange:
      return FUSION_TUNER_INVALID_ARGUMENT;
    case absl::StatusCode::kPermissionDenied:
      return FUSION_TUNER_UNAUTHENTICATED;
    default:
      return FUSION_TUNER_INTERNAL;
  }
}

const char* LastMessage() { return ThreadState::Current().message.c_str(); }

}  // namespace fusion::tuning
