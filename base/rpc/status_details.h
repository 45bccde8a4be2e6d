// An absl::Status carries details beside its code and message, and is stored and sent as google.rpc.Status.
#pragma once

#include <chrono>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace fusion {

// The type URL under which an absl::Status carries a serialised google.rpc.BadRequest.
inline constexpr absl::string_view kBadRequestTypeUrl = "type.googleapis.com/google.rpc.BadRequest";

// The type URL under which it carries a serialised google.rpc.RetryInfo.
inline constexpr absl::string_view kRetryInfoTypeUrl = "type.googleapis.com/google.rpc.RetryInfo";

// Every payload of the status becomes a detail with the same type URL, and the other way round. Nothing is
// cut.
google::rpc::Status ToRpcStatus(const absl::Status& status);
absl::Status FromRpcStatus(const google::rpc::Status& status);

// The violations that a status carries, in order; empty when it carries none.
std::vector<google::rpc::BadRequest::FieldViolation> FieldViolations(const absl::Status& status);

// A ResourceExhausted with a google.rpc.RetryInfo: there is no room now, but there may be after the delay.
absl::Status RetryLater(absl::string_view message, std::chrono::duration<double> delay);
// The seconds of the RetryInfo that a status carries; 0: none.
double RetrySeconds(const absl::Status& status);

// An InvalidArgument about one field of a request.
absl::Status InvalidField(absl::string_view field, absl::string_view description);

}  // namespace fusion
