// gRPC adapter of WorkerService.
#pragma once

#include <atomic>
#include <cstdint>

#include "fusion/v1/worker.grpc.pb.h"
#include "server/rpc/service_context.h"

namespace fusion {

// Thread safe.
class WorkerServiceImpl : public v1::WorkerService::CallbackService {
 public:
  // This is not inline: callers need not compile the handlers of all methods.
  explicit WorkerServiceImpl(const ServiceContext& context);
  ~WorkerServiceImpl() override;

  // The dispatcher holds the call for up to request->wait_seconds; no thread waits.
  grpc::ServerUnaryReactor* Synchronize(grpc::CallbackServerContext* call,
                                        const v1::SynchronizeRequest* request,
                                        v1::SynchronizeResponse* response) override;
  grpc::ServerWriteReactor<v1::Chunk>* ReadBlob(grpc::CallbackServerContext* call,
                                                const v1::ReadBlobRequest* request) override;
  grpc::ServerReadReactor<v1::Chunk>* WriteBlob(grpc::CallbackServerContext* call,
                                                v1::WriteBlobResponse* response) override;

 private:
  const ServiceContext context_;
  std::atomic<int64_t> calls_{0};  // calls of Synchronize so far
};

}  // namespace fusion
