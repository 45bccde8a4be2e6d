#include "server/parse/error_list.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"

namespace fusion {

const char kBadRequestType[] = "type.googleapis.com/google.rpc.BadRequest";

namespace {
// Errors are found in passes and reported by position, so more are kept than are reported.
constexpr size_t kKept = 10000;
}  // namespace

ErrorList::ErrorList(std::string file_name) : file_name_(std::move(file_name)) {
  if (file_name_.empty()) file_name_ = "<submission>";
  std::replace_if(file_name_.begin(), file_name_.end(), absl::ascii_iscntrl, '?');
}

void ErrorList::Add(const Location& location, std::string message) {
  ++count_;
  if (errors_.size() < kKept) errors_.push_back({location, std::move(message)});
}

absl::Status ErrorList::ToStatus() const {
  if (empty()) return absl::OkStatus();
  std::vector<const Error*> sorted;
  sorted.reserve(errors_.size());
  for (const Error& error : errors_) sorted.push_back(&error);
  std::stable_sort(sorted.begin(), sorted.end(), [](const Error* a, const Error* b) {
    return std::tie(a->location.position.line, a->location.position.column) <
           std::tie(b->location.position.line, b->location.position.column);
  });
  std::string message;
  google::rpc::BadRequest details;
  const int reported = std::min<int>(kReported, static_cast<int>(sorted.size()));
  for (int i = 0; i < reported; ++i) {
    const Error& error = *sorted[i];
    const std::string place = error.location.ToString();
    const std::string full = place.empty() ? file_name_ : absl::StrCat(file_name_, ":", place);
    absl::StrAppend(&message, i ? "\n" : "", full, ": error: ", error.message);
    google::rpc::BadRequest::FieldViolation* violation = details.add_field_violations();
    violation->set_field(error.location.position.line > 0 || place.empty() ? full : place);
    violation->set_description(error.message);
  }
  if (count_ > reported) {
    const int more = count_ - reported;
    absl::StrAppend(&message, "\n", file_name_, ": error: and ", more,
                    more == 1 ? " more error" : " more errors");
  }
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kBadRequestType, absl::Cord(details.SerializeAsString()));
  return status;
}

}  // namespace fusion
