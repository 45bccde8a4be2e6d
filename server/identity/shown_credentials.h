// Collects what the caller of a gRPC call shows.
#pragma once

#include <grpcpp/server_context.h>

#include <optional>
#include <string>
#include <string_view>

#include "server/identity/access_gate.h"

namespace fusion {

// The headers of one call that say who calls.
class ShownHeaders {
 public:
  // Takes a header of the call; most headers are none of these and are ignored.
  void Add(std::string_view name, std::string_view value);
  // Adds what the headers say to what the connection showed.
  ShownCredentials Complete(ShownCredentials of_connection, AccessGate& gate) const;

 private:
  std::string authorization_;
  std::optional<ForwardedCaller> forwarded_;
};

// Collects what the caller shows, by the connection and by headers.
ShownCredentials ShownBy(const grpc::CallbackServerContext& call, AccessGate& gate);

}  // namespace fusion
