// The log lines of a task are found again by its name and trace id.
#pragma once

#include <string>

#include "base/monitor/log.h"
#include "base/monitor/trace_context.h"

namespace fusion {

// While it lives, lines that this thread logs carry the task, and the trace id of the job that it was queued
// for where the server said it (Assignment.traceparent). Must end on the thread on which it began.
class AssignmentScope {
 public:
  AssignmentScope(const std::string& task, const std::string& traceparent)
      : task_("task", task), trace_("trace_id", TraceIdOf(traceparent)) {}

 private:
  static std::string TraceIdOf(const std::string& traceparent) {
    const auto context = ParseTraceParent(traceparent);
    return context ? context->trace_id : "";
  }
  const LogScope task_;
  const LogScope trace_;
};

}  // namespace fusion
