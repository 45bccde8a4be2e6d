// Unary calls whose work runs on a thread pool, so that gRPC's own threads never wait for a disk or a search.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "server/dispatch/cancellation.h"

namespace fusion {

// Bytes of error message and details that the caller of `context` accepts (kErrorBytesHeader).
size_t AcceptedErrorBytes(const grpc::CallbackServerContext& context);

// Runs `work`; an exception becomes Internal (ResourceExhausted when memory ran out).
absl::Status RunCatching(const std::function<absl::Status()>& work);

// Runs `work` on the pool and ends the call with its status. `work` fills the response itself; its token is
// cancelled when the caller gives up. The pool must be joined only after the gRPC server has been shut down.
grpc::ServerUnaryReactor* RunOnPool(boost::asio::thread_pool& pool,
                                    const grpc::CallbackServerContext& context,
                                    std::function<absl::Status(const CancellationToken&)> work);

}  // namespace fusion
