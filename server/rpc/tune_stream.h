// Serves Tune: the connection of one running program.
#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <boost/asio/thread_pool.hpp>

#include "fusion/v1/tuner.pb.h"
#include "server/identity/access_gate.h"
#include "server/tuner/tuning_registry.h"

namespace fusion {

// Asks the gate, then serves the program until it or the server goes. All arguments but the call outlive the
// stream. Ends with InvalidArgument: messages that the protocol does not allow; ResourceExhausted: too large,
// or too many programs; Aborted: the process has connected again; Unauthenticated: the caller's credentials
// are good no more; Unavailable: the server goes down. The messages are v1::TuneRequest and v1::TuneResponse,
// as bytes: gRPC would report a message that cannot be read as the end of the stream.
grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* StartTuneStream(
    TuningRegistry& tunings, boost::asio::thread_pool& pool, AccessGate& gate,
    const grpc::CallbackServerContext& call);

}  // namespace fusion
