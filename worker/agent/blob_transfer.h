// Blobs between this worker and the server, with a cache in between.
#pragma once

#include <grpcpp/channel.h>

#include <memory>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "fusion/v1/worker.grpc.pb.h"
#include "worker/agent/blob_cache.h"

namespace fusion {

// Thread safe. While the server is away, calls wait and try again until they are stopped (Cancelled).
class BlobTransfer {
 public:
  BlobTransfer(std::shared_ptr<grpc::Channel> channel, int64_t cache_bytes);

  // The blob, from the cache or the server. Its bytes have the digest when it is returned, wherever they come
  // from: bytes that were damaged in the cache are fetched again. NotFound, DataLoss.
  absl::StatusOr<std::string> Read(const std::string& digest, std::stop_token stop);
  // Brings the blob into the cache, so that a Read that follows need not wait for the server.
  void Prefetch(const std::string& digest, std::stop_token stop);
  // Stores the blob on the server and in the cache.
  absl::Status Write(const std::string& digest, const std::string& content, std::stop_token stop);

 private:
  absl::StatusOr<std::string> ReadFromServer(const std::string& digest, std::stop_token stop);
  absl::StatusOr<std::string> ReadOnce(const std::string& digest, std::stop_token stop);
  absl::Status WriteOnce(const std::string& digest, const std::string& content, std::stop_token stop);
  const std::unique_ptr<v1::WorkerService::Stub> stub_;
  BlobCache cache_;
};

}  // namespace fusion
