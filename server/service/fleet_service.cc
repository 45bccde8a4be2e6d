#include "server/service/fleet_service.h"

#include <utility>

#include "server/service/pooled_call.h"

namespace fusion {

grpc::ServerUnaryReactor* FleetServiceImpl::ListWorkers(grpc::CallbackServerContext* call,
                                                        const v1::ListWorkersRequest* request,
                                                        v1::ListWorkersResponse* response) {
  return RunOnPool(context_.requests, *call, [this, response](const CancellationToken&) -> absl::Status {
    for (v1::Worker& worker : context_.dispatcher.Workers()) *response->add_workers() = std::move(worker);
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* FleetServiceImpl::DrainWorker(grpc::CallbackServerContext* call,
                                                        const v1::DrainWorkerRequest* request,
                                                        v1::Worker* response) {
  return RunOnPool(context_.requests, *call,
                   [this, request, response](const CancellationToken&) -> absl::Status {
                     absl::StatusOr<v1::Worker> worker = context_.dispatcher.Drain(request->name());
                     if (!worker.ok()) return worker.status();
                     *response = *std::move(worker);
                     return absl::OkStatus();
                   });
}

}  // namespace fusion
