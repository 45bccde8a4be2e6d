// Moves byte strings over streaming calls.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "fusion/v1/artifact.pb.h"
#include "fusion/v1/worker.pb.h"
#include "server/rpc/pooled_call.h"

namespace fusion {

struct Blob {
  std::string digest;  // "sha256:<hex>"
  std::string bytes;
};

// Asks the gate, loads a blob on the pool, then sends it in chunks. The pool and the gate outlive the calls.
grpc::ServerWriteReactor<v1::Chunk>* SendBlob(boost::asio::thread_pool& pool, AccessGate& gate,
                                              const IncomingCall& incoming,
                                              std::function<absl::StatusOr<Blob>(AdmittedCall&)> load);

using ReceivedBlobStore = std::function<absl::Status(AdmittedCall&, const Blob&)>;

// Asks the gate, receives chunks, checks the digest, then calls `store` on the pool; answers with the digest.
// The request of `incoming` is ignored: there is none before the first chunk.
grpc::ServerReadReactor<v1::Chunk>* ReceiveBlob(boost::asio::thread_pool& pool, AccessGate& gate,
                                                const IncomingCall& incoming, v1::WriteBlobResponse* response,
                                                ReceivedBlobStore store);

}  // namespace fusion
