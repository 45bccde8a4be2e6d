// W3C Trace Context: the `traceparent` by which the work of one request is found again in every program that
// it passes through (https://www.w3.org/TR/trace-context/).
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace fusion {

// The name of the gRPC metadata (HTTP header).
inline constexpr char kTraceParentHeader[] = "traceparent";

struct TraceContext {
  std::string trace_id;      // 32 lower-case hex digits, not all 0
  std::string parent_id;     // 16, not all 0: the span that calls
  std::string flags = "01";  // 01: sampled

  // "00-<trace id>-<parent id>-<flags>"
  std::string ToString() const;
};

// Returns nothing when the text is no valid traceparent: as the standard asks for, it is then treated as
// absent. Text of a later version than 00 is read as far as 00 goes.
std::optional<TraceContext> ParseTraceParent(absl::string_view text);

// Makes a trace with new random ids. Thread safe.
TraceContext NewTrace();
// Returns a context of the same trace with a new span.
TraceContext ChildOf(const TraceContext& parent);

// Returns the trace of $TRACEPARENT with a new span when it is valid; else a new trace.
TraceContext TraceFromEnvironment();

}  // namespace fusion
