// Log lines of a program: text for people, or one JSON object a line for machines.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace fusion {

enum class LogFormat { kText, kJson };

using LogFields = std::vector<std::pair<std::string, std::string>>;

// Makes the default logger of the process: to stderr, from `level` (debug, info, warn, error) on. Call before
// threads log.
//
// A JSON line has "time" (RFC 3339, UTC, microseconds), "level", "program", "message", the `fields` of the
// process (such as the worker's name), those of the LogScopes around the call (such as "job" and "trace_id"),
// and, where no scope gives them, "job" and "task" from the first jobs/ID and tasks/ID that the message
// names. Invalid UTF-8 is replaced.
void SetUpLogging(LogFormat format, const std::string& level, const std::string& program,
                  const LogFields& fields = {});

// Returns one line as it is logged; for tests and SetUpLogging. `seconds` counts from 1970.
std::string JsonLogLine(double seconds, const std::string& level, const std::string& message,
                        const LogFields& fields);

// While it lives, lines that this thread logs carry the field; an empty value is left out. Scopes nest; an
// inner field hides an outer one of its name. Must end on the thread on which it began.
class LogScope {
 public:
  LogScope(std::string name, std::string value);
  ~LogScope();
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;
};
// Returns the fields of this thread's scopes, outermost first.
const LogFields& CurrentLogFields();

}  // namespace fusion
