// Checks where a server may listen.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace fusion {

// FailedPrecondition says what to do: without TLS a server listens on loopback addresses alone, because
// everybody who reaches it may do everything, unless `any_address` was asked for. InvalidArgument: the
// address is a port, or a host, alone.
absl::Status CheckListening(const std::string& address, bool tls, bool any_address);

}  // namespace fusion
