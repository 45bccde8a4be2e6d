// Unary calls whose work runs on a thread pool, so that gRPC's own threads never wait for a disk or a search.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/server_callback.h>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "server/dispatch/cancellation.h"
#include "server/identity/access_gate.h"

namespace fusion {

// Returns the bytes of error message and details that the caller of `context` accepts (kErrorBytesHeader).
size_t AcceptedErrorBytes(const grpc::CallbackServerContext& context);

// Runs `work`; an exception becomes Internal (ResourceExhausted when memory ran out).
absl::Status RunCatching(const std::function<absl::Status()>& work);

// A call as it comes in.
struct IncomingCall {
  const grpc::CallbackServerContext& context;
  const char* method;  // "/fusion.v1.OptimizerService/Submit"
  const google::protobuf::MessageLite& request;
};

// A call that the gate has let in, while its work runs.
struct AdmittedCall {
  const Principal& caller;
  const CancellationToken& token;  // cancelled when the caller gives up
  std::string subject;             // for the audit log, what the call is about: "jobs/..."
  // The caller was told NotFound of what is another user's: recorded as PERMISSION_DENIED.
  bool refused = false;
};

// Asks the gate, runs `work` on the pool, ends the call with its status, and has the end recorded. The pool
// must be joined only after the gRPC server has been shut down; the gate outlives the call.
grpc::ServerUnaryReactor* RunOnPool(boost::asio::thread_pool& pool, AccessGate& gate,
                                    const IncomingCall& incoming,
                                    std::function<absl::Status(AdmittedCall&)> work);

}  // namespace fusion
