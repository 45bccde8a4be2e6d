#include "base/monitor/trace_context.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/random_id.h"

namespace fusion {
namespace {

constexpr size_t kLength = 55;  // of version 00

bool IsHex(absl::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}
bool IsZero(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == '0'; });
}

}  // namespace

std::string TraceContext::ToString() const {
  return absl::StrCat("00-", trace_id, "-", parent_id, "-", flags);
}

std::optional<TraceContext> ParseTraceParent(absl::string_view text) {
  if (text.size() < kLength) return std::nullopt;
  const absl::string_view version = text.substr(0, 2);
  if (!IsHex(version) || version == "ff") return std::nullopt;
  if (version == "00" ? text.size() != kLength : text.size() > kLength && text[kLength] != '-')
    return std::nullopt;
  if (text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  TraceContext context;
  context.trace_id = std::string(text.substr(3, 32));
  context.parent_id = std::string(text.substr(36, 16));
  context.flags = std::string(text.substr(53, 2));
  if (!IsHex(context.trace_id) || IsZero(context.trace_id)) return std::nullopt;
  if (!IsHex(context.parent_id) || IsZero(context.parent_id) || !IsHex(context.flags)) return std::nullopt;
  return context;
}

TraceContext NewTrace() { return {.trace_id = RandomHex(4), .parent_id = RandomHex(2)}; }

TraceContext ChildOf(const TraceContext& parent) {
  return {.trace_id = parent.trace_id, .parent_id = RandomHex(2), .flags = parent.flags};
}

TraceContext TraceFromEnvironment() {
  const char* given = std::getenv("TRACEPARENT");
  const std::optional<TraceContext> parent = given == nullptr ? std::nullopt : ParseTraceParent(given);
  return parent ? ChildOf(*parent) : NewTrace();
}

}  // namespace fusion
