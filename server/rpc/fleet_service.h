// gRPC adapter of FleetService.
#pragma once

#include "fusion/v1/optimizer.grpc.pb.h"
#include "server/rpc/service_context.h"

namespace fusion {

// Thread safe.
class FleetServiceImpl : public v1::FleetService::CallbackService {
 public:
  // This is not inline: callers need not compile the handlers of all methods.
  explicit FleetServiceImpl(const ServiceContext& context);
  ~FleetServiceImpl() override;

  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* call,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override;
  // The worker finishes what it runs and takes nothing new. NotFound: no such worker.
  grpc::ServerUnaryReactor* DrainWorker(grpc::CallbackServerContext* call,
                                        const v1::DrainWorkerRequest* request, v1::Worker* response) override;

 private:
  const ServiceContext context_;
};

}  // namespace fusion
