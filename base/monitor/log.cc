#include "base/monitor/log.h"

#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"

namespace fusion {
namespace {

thread_local LogFields scope_fields;

// "2026-11-22T07:04:00.123456Z"
std::string Rfc3339(double seconds) {
  const int64_t micros = static_cast<int64_t>(seconds * 1e6 + 0.5);
  const std::time_t whole = micros / 1000000;
  std::tm utc{};
  gmtime_r(&whole, &utc);
  return absl::StrFormat("%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", utc.tm_year + 1900, utc.tm_mon + 1,
                         utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, micros % 1000000);
}

// "jobs/1f" of "cannot stop jobs/1f: no"; "" when there is none.
std::string NameIn(const std::string& message, const std::string& prefix) {
  for (size_t begin = message.find(prefix); begin != std::string::npos;
       begin = message.find(prefix, begin + 1)) {
    if (begin > 0 && (absl::ascii_isalnum(message[begin - 1]) || message[begin - 1] == '/')) continue;
    size_t end = begin + prefix.size();
    while (end < message.size() && absl::ascii_isxdigit(message[end])) ++end;
    if (end > begin + prefix.size()) return message.substr(begin, end - begin);
  }
  return "";
}

class JsonFormatter final : public spdlog::formatter {
 public:
  explicit JsonFormatter(LogFields fields) : fields_(std::move(fields)) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    LogFields fields = fields_;
    fields.insert(fields.end(), scope_fields.begin(), scope_fields.end());
    const double seconds = std::chrono::duration<double>(message.time.time_since_epoch()).count();
    const auto level = spdlog::level::to_string_view(message.level);
    const std::string line = JsonLogLine(seconds, std::string(level.data(), level.size()),
                                         std::string(message.payload.data(), message.payload.size()), fields);
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>(fields_);
  }

 private:
  const LogFields fields_;
};

}  // namespace

std::string JsonLogLine(double seconds, const std::string& level, const std::string& message,
                        const LogFields& fields) {
  nlohmann::ordered_json line;
  line["time"] = Rfc3339(seconds);
  line["level"] = level;
  for (const auto& [name, value] : fields)
    if (!value.empty() && name != "time" && name != "level" && name != "message") line[name] = value;
  for (const char* kind : {"job", "task"}) {
    if (line.contains(kind)) continue;
    if (std::string name = NameIn(message, std::string(kind) + "s/"); !name.empty()) line[kind] = name;
  }
  line["message"] = message;
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void SetUpLogging(LogFormat format, const std::string& level, const std::string& program,
                  const LogFields& fields) {
  auto logger = std::make_shared<spdlog::logger>("", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  if (format == LogFormat::kJson) {
    LogFields all = {{"program", program}};
    all.insert(all.end(), fields.begin(), fields.end());
    logger->set_formatter(std::make_unique<JsonFormatter>(std::move(all)));
  }
  spdlog::set_default_logger(std::move(logger));
  spdlog::set_level(spdlog::level::from_str(level));
}

LogScope::LogScope(std::string name, std::string value) {
  scope_fields.emplace_back(std::move(name), std::move(value));
}

LogScope::~LogScope() { scope_fields.pop_back(); }

const LogFields& CurrentLogFields() { return scope_fields; }

}  // namespace fusion
