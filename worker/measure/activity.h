// A page of memory shared between a runner and its parent in which the runner says what it is doing, so that
// the parent can end a run that takes too long, and knows afterwards which program faulted. Writing costs the
// runner nothing that a timing could notice.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace fusion {

enum class Activity : int32_t {
  kIdle,       // waiting for a request
  kSetUp,      // allocating, filling, converting, loading, comparing: our own code
  kReference,  // running the reference program
  kLoad,       // loading the code of a program
  kRun,        // running a program
};

// The unfused program's number; others are positions in the task.
inline constexpr int32_t kUnfusedProgram = -1;
inline constexpr int32_t kNoProgram = -2;

struct ActivityState {
  Activity activity = Activity::kIdle;
  int32_t program = kNoProgram;
  double seconds = 0;  // since it began
};

class ActivityPage {
 public:
  // A new page behind a descriptor that a child can inherit.
  static absl::StatusOr<std::unique_ptr<ActivityPage>> Create();
  // The page behind an inherited descriptor.
  static absl::StatusOr<std::unique_ptr<ActivityPage>> Open(int descriptor);
  ~ActivityPage();
  ActivityPage(const ActivityPage&) = delete;
  ActivityPage& operator=(const ActivityPage&) = delete;

  int descriptor() const { return descriptor_; }
  // One thread writes, any process reads.
  void Set(Activity activity, int32_t program = kNoProgram);
  ActivityState Get() const;

 private:
  struct Shared {
    std::atomic<int64_t> began_nanoseconds;  // of the monotonic clock, which all processes share
    std::atomic<int64_t> what;               // activity and program in one word: never torn
  };
  static_assert(std::atomic<int64_t>::is_always_lock_free);
  explicit ActivityPage(int descriptor, Shared* shared) : descriptor_(descriptor), shared_(shared) {}
  static absl::StatusOr<std::unique_ptr<ActivityPage>> Map(int descriptor);
  const int descriptor_;
  Shared* const shared_;
};

}  // namespace fusion
