// Byte strings over streaming calls.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "fusion/v1/artifact.pb.h"
#include "fusion/v1/worker.pb.h"

namespace fusion {

struct Blob {
  std::string digest;  // "sha256:<hex>"
  std::string bytes;
};

// Loads a blob on the pool, then sends it in chunks. The pool outlives the calls.
grpc::ServerWriteReactor<v1::Chunk>* SendBlob(boost::asio::thread_pool& pool,
                                              std::function<absl::StatusOr<Blob>()> load);

// Receives chunks, checks the digest, then calls `store` on the pool; answers with the digest.
grpc::ServerReadReactor<v1::Chunk>* ReceiveBlob(boost::asio::thread_pool& pool,
                                                v1::WriteBlobResponse* response,
                                                std::function<absl::Status(const Blob&)> store);

}  // namespace fusion
