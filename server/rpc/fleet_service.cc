#include "server/rpc/fleet_service.h"

#include <utility>

#include "base/status_macros.h"
#include "server/rpc/pooled_call.h"

namespace fusion {

FleetServiceImpl::FleetServiceImpl(const ServiceContext& context) : context_(context) {}
FleetServiceImpl::~FleetServiceImpl() = default;

grpc::ServerUnaryReactor* FleetServiceImpl::ListWorkers(grpc::CallbackServerContext* call,
                                                        const v1::ListWorkersRequest* request,
                                                        v1::ListWorkersResponse* response) {
  const IncomingCall incoming{*call, "/fusion.v1.FleetService/ListWorkers", *request};
  return RunOnPool(context_.requests, context_.gate, incoming,
                   [this, response](AdmittedCall&) -> absl::Status {
                     for (v1::Worker& worker : context_.dispatcher.Workers())
                       *response->add_workers() = std::move(worker);
                     return absl::OkStatus();
                   });
}

grpc::ServerUnaryReactor* FleetServiceImpl::DrainWorker(grpc::CallbackServerContext* call,
                                                        const v1::DrainWorkerRequest* request,
                                                        v1::Worker* response) {
  const IncomingCall incoming{*call, "/fusion.v1.FleetService/DrainWorker", *request};
  return RunOnPool(context_.requests, context_.gate, incoming,
                   [this, request, response](AdmittedCall& admitted) -> absl::Status {
                     admitted.subject = request->name();
                     FUSION_ASSIGN_OR_RETURN(v1::Worker worker, context_.dispatcher.Drain(request->name()));
                     *response = std::move(worker);
                     return absl::OkStatus();
                   });
}

}  // namespace fusion
