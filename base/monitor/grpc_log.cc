#include "base/monitor/grpc_log.h"

#include <grpc/support/log.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

constexpr int kLinesPerSecond = 10;
constexpr size_t kMostCharacters = 400;

// Never destroyed: gRPC's threads live until the process is gone, spdlog's own registry does not.
struct GrpcLines {
  std::shared_ptr<spdlog::logger> logger;
  LineLimiter limiter;
  std::function<void(const std::string&)> listener_ended;
};
GrpcLines* g_lines = nullptr;

// gRPC's tcp_server_posix.cc begins a line with this right before it listens no more.
constexpr std::string_view kListenerEnded = "Failed accept4: ";

void WriteLine(gpr_log_func_args* line) {
  if (std::string_view message = line->message;
      g_lines->listener_ended && message.starts_with(kListenerEnded))
    g_lines->listener_ended(std::string(message.substr(kListenerEnded.size())));
  const auto level = line->severity == GPR_LOG_SEVERITY_ERROR ? spdlog::level::warn : spdlog::level::debug;
  if (!g_lines->logger->should_log(level)) return;
  const auto [write, left_out] = g_lines->limiter.Take(std::chrono::steady_clock::now());
  if (!write) return;
  const std::string_view file = line->file;
  g_lines->logger->log(level, "gRPC, {}:{}: {}{}", std::string(file.substr(file.rfind('/') + 1)), line->line,
                       PrintableLine(line->message),
                       left_out == 0 ? "" : absl::StrCat(" (", left_out, " lines before were left out)"));
}

}  // namespace

void RouteGrpcLog(std::function<void(const std::string& error)> listener_ended) {
  static GrpcLines* const lines = new GrpcLines;
  lines->logger = spdlog::default_logger();
  lines->listener_ended = std::move(listener_ended);
  g_lines = lines;
  gpr_set_log_function(WriteLine);
}

std::string PrintableLine(std::string_view text) {
  std::string line = absl::CEscape(absl::string_view(text.data(), std::min(text.size(), kMostCharacters)));
  if (line.size() <= kMostCharacters && text.size() <= kMostCharacters) return line;
  line.resize(std::min(line.size(), kMostCharacters - 3));
  return line + "...";
}

LineLimiter::Verdict LineLimiter::Take(std::chrono::steady_clock::time_point now) {
  std::lock_guard lock(mutex_);
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    written_ = 0;
  }
  if (written_ >= kLinesPerSecond) {
    ++left_out_;
    return {};
  }
  ++written_;
  return {true, std::exchange(left_out_, 0)};
}

}  // namespace fusion
