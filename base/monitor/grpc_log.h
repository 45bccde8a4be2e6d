// What gRPC has to say, as lines of the program's own log.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace fusion {

// From now on gRPC's lines go to the default logger: its errors as warnings, as they are mostly of a caller's
// making, less important ones at debug (shown when gRPC is asked for them, $GRPC_VERBOSITY). What a caller
// sent stands in some, so bytes that are no printable ASCII are escaped, long lines are cut, and of many only
// some are written (LineLimiter). Call after SetUpLogging, once.
//
// gRPC 1.51 listens no more after the first error of accept(2), such as no free file descriptor, and says so
// in its log alone: `listener_ended` is called with the error then, on one of gRPC's threads.
void RouteGrpcLog(std::function<void(const std::string& error)> listener_ended = nullptr);

// A line as it is written: escaped, at most 400 characters.
std::string PrintableLine(std::string_view text);

// Ten lines a second. Thread safe.
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
