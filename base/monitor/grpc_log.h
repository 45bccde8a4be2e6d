// gRPC's own messages become lines of the program's log.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace fusion {

// Sends gRPC's lines to the default logger from now on: its errors as warnings, as they are mostly of a
// caller's making, less important ones at debug (shown when gRPC is asked for them, $GRPC_VERBOSITY). Some
// lines hold what a caller sent, so bytes that are no printable ASCII are escaped, long lines are cut, and
// only some of many lines are written (LineLimiter). Call it once, after SetUpLogging.
//
// gRPC 1.51 stops listening after the first error of accept(2), such as no free file descriptor, and says so
// in its log alone: `listener_ended` is called with the error then, on one of gRPC's threads.
void RouteGrpcLog(std::function<void(const std::string& error)> listener_ended = nullptr);

// Returns a line as it is written: escaped, at most 400 characters.
std::string PrintableLine(std::string_view text);

// Lets ten lines a second pass. Thread safe.
class LineLimiter {
 public:
  struct Verdict {
    bool write = false;
    int left_out = 0;  // lines that were not written since the last that was, if this one is
  };
  Verdict Take(std::chrono::steady_clock::time_point now);

 private:
  std::mutex mutex_;
  std::chrono::steady_clock::time_point second_{};  // guarded by mutex_; when the count began
  int written_ = 0, left_out_ = 0;                  // guarded by mutex_
};

}  // namespace fusion
