// absl::Status inside the program, grpc::Status with google.rpc.Status details on the wire. Used by both
// ends.
#pragma once

#include <grpcpp/support/status.h>

#include <cstddef>

#include "absl/status/status.h"
#include "base/rpc/status_details.h"

namespace fusion {

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

}  // namespace fusion
