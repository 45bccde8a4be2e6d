// gRPC adapter of WorkerService.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "fusion/v1/worker.grpc.pb.h"
#include "server/service/service_context.h"

namespace fusion {

// Thread safe.
class WorkerServiceImpl : public v1::WorkerService::CallbackService {
 public:
  // Not inline: whoever makes one need not compile the handlers of all methods.
  explicit WorkerServiceImpl(const ServiceContext& context);
  ~WorkerServiceImpl() override;

  // Held by the dispatcher for up to request->wait_seconds; no thread waits.
  grpc::ServerUnaryReactor* Synchronize(grpc::CallbackServerContext* call,
                                        const v1::SynchronizeRequest* request,
                                        v1::SynchronizeResponse* response) override;
  grpc::ServerWriteReactor<v1::Chunk>* ReadBlob(grpc::CallbackServerContext* call,
                                                const v1::ReadBlobRequest* request) override;
  grpc::ServerReadReactor<v1::Chunk>* WriteBlob(grpc::CallbackServerContext* call,
                                                v1::WriteBlobResponse* response) override;

  // That there is a connection of that name (server/identity/peer_name.h), before anything comes over it; and
  // that it is no more: then the workers that called over it last are lost unless they call again soon,
  // whether a call of theirs was open or they were between two.
  void ConnectionBegan(const std::string& socket_name);
  void ConnectionEnded(const std::string& socket_name);

 private:
  const ServiceContext context_;
  std::mutex mutex_;
  int64_t calls_ = 0;  // of Synchronize, so far; guarded by mutex_, as all below
  // Of each connection that there is: the newest call of each worker.
  std::unordered_map<std::string, std::map<std::string, int64_t>> connections_;
};

}  // namespace fusion
