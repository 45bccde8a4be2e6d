// absl::Status inside the program, grpc::Status with google.rpc.Status details on the wire. Used by both
// ends.
#pragma once

#include <grpcpp/support/status.h>

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace fusion {

// The type URL under which an absl::Status carries a serialised google.rpc.BadRequest.
inline constexpr absl::string_view kBadRequestTypeUrl = "type.googleapis.com/google.rpc.BadRequest";

// And a serialised google.rpc.RetryInfo.
inline constexpr absl::string_view kRetryInfoTypeUrl = "type.googleapis.com/google.rpc.RetryInfo";

// The status travels in HTTP/2 trailers, of which clients accept 8 KiB unless they say more. A client that
// takes more sends this header with the number of bytes (decimal) it accepts for message and details
// together.
inline constexpr char kErrorBytesHeader[] = "fusion-error-bytes";
inline constexpr size_t kDefaultErrorBytes = 6000;
inline constexpr size_t kMaximumErrorBytes = 512 * 1024;

// Every payload of the status becomes a detail with the same type URL, and the other way round. A message
// longer than half of `error_bytes` is cut at a line end and says so; field violations are dropped from the
// end until the details fit the rest.
grpc::Status ToGrpcStatus(const absl::Status& status, size_t error_bytes = kDefaultErrorBytes);
absl::Status FromGrpcStatus(const grpc::Status& status);

// google.rpc.Status as stored with a failed job; nothing is cut.
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
