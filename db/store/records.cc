#include "db/store/records.h"

namespace fusion {

bool IsTerminal(JobState state) {
  return state == JobState::kSucceeded || state == JobState::kFailed || state == JobState::kCancelled;
}

const char* JobStateName(JobState state) {
  switch (state) {
    case JobState::kQueued:
      return "QUEUED";
    case JobState::kRunning:
      return "RUNNING";
    case JobState::kSucceeded:
      return "SUCCEEDED";
    case JobState::kFailed:
      return "FAILED";
    case JobState::kCancelled:
      return "CANCELLED";
  }
  return "UNKNOWN";
}

bool IsTerminal(TaskState state) {
  return state == TaskState::kDone || state == TaskState::kFailed || state == TaskState::kCancelled;
}

const char* TaskStateName(TaskState state) {
  switch (state) {
    case TaskState::kQueued:
      return "QUEUED";
    case TaskState::kRunning:
      return "RUNNING";
    case TaskState::kDone:
      return "DONE";
    case TaskState::kFailed:
      return "FAILED";
    case TaskState::kCancelled:
      return "CANCELLED";
  }
  return "UNKNOWN";
}

}  // namespace fusion
